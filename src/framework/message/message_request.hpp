#pragma once
// MessageMatcher makes a request of each send and receive that cannot be done at once, and binds it
// to its message.

#include "framework/call/around_call.hpp"
#include "framework/call/call.hpp"
#include "framework/call/operation.hpp"
#include "platform/transport/message_digest.hpp"
#include "platform/transport/messages.hpp"

namespace anyccl {

/// One send or receive: a message of a pair, fragment by fragment. It moves once it is bound.
class MessageRequest final : public Operation {
 public:
  /// For another call, or the first one. `order`: among the requests of this rank, by the order of
  /// their calls.
  void begin(const Call& call, std::uint64_t order);
  /// It is message `number` between this rank and `peer` in its direction, from 1. `envelope`: of a
  /// receive, what came.
  void bind(Messages& messages, Rank peer, std::uint64_t number, const Envelope& envelope = {});
  /// Copies the bytes of a send that has not moved: from now on it sends the copy.
  void copy_bytes() {
    own_.assign(call_.input, call_.input + total_);
    call_.input = own_.data();
  }
  /// Its data goes through queues of devices: here the two ends only meet. `around`: its after() is
  /// called when they have, with the progress lock; or null.
  void set_in_queues(AroundCall* around) {
    in_queues_ = true;
    around_ = around;
  }
  bool is_in_queues() const { return in_queues_; }
  /// A receive has met a message that fits it.
  void end_receive() { complete(around_ == nullptr ? Status() : around_->after()); }
  bool advance() override;
  void awaited(std::vector<Rank>& ranks) const override {
    if (call_.root != kAnySource) ranks.push_back(call_.root);
  }

  std::string what() const override;
  std::uint64_t progress() const override { return done_ + fragments_ + (sent_ ? 1 : 0); }

  const Call& call() const { return call_; }
  std::uint64_t order() const { return order_; }
  std::size_t bytes() const { return total_; }
  /// The announcement to the receiver: its tag and type, and the other facts of message_digest.
  std::uint64_t digest() const {
    std::uint64_t plain = message_digest::of(call_.tag, call_.dtype);
    if (in_queues_) plain = message_digest::in_queues(plain);
    return call_.synchronous ? message_digest::synchronous(plain) : plain;
  }
  std::uint64_t number() const { return message_; }
  bool has_started() const { return fragments_ > 0; }
  /// Whether a send is out: only the answer of its receiver is missing, if anything is.
  bool is_sent() const { return sent_; }
  /// A synchronous send was matched.
  void take_answer();
  /// The message of a receive was found otherwise: it came from `source`.
  void set_source(Rank source) { call_.root = source; }
  /// Once it is done.
  Rank peer() const { return call_.root; }

  bool is_answered_by(std::uint64_t digest) const {
    return message_digest::answer(message_) == digest;
  }

 private:
  Fragment fragment() const;
  bool send_fragment();
  bool receive_fragment();

  Call call_;
  std::vector<std::byte> own_;  // see copy_bytes()
  Messages* messages_ = nullptr;
  std::uint64_t message_ = 0, order_ = 0;
  std::size_t total_ = 0, done_ = 0, most_ = 0;  // bytes; the most of a fragment
  std::uint32_t fragments_ = 0;
  AroundCall* around_ = nullptr;
  bool in_queues_ = false;
  bool lent_ = false;      // a receive reads the sender's memory
  bool sent_ = false;      // see is_sent()
  bool answered_ = false;  // it is not synchronous, or its receiver has answered
};

}  // namespace anyccl
