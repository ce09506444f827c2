#pragma once

#include "framework/call/call.hpp"
#include "framework/call/operation.hpp"
#include "platform/transport/messages.hpp"

namespace anyccl {

/// One send or receive: a message of a pair, fragment by fragment. It moves once it is bound.
class MessageRequest final : public Operation {
 public:
  /// For another call, or the first one. `order`: among the requests of this rank, by the order of
  /// their calls.
  void begin(const Call& call, std::uint64_t order);
  /// It is message `number` between this rank and `peer` in its direction, from 1. `lent`: of a
  /// receive, see Envelope.
  void bind(Messages& messages, Rank peer, std::uint64_t number, bool lent = false);
  /// Of a send that has not moved: its bytes are a copy from now on.
  void copy_bytes() {
    own_.assign(call_.input, call_.input + total_);
    call_.input = own_.data();
  }
  bool advance() override;
  void awaited(std::vector<Rank>& ranks) const override {
    if (call_.root != kAnySource) ranks.push_back(call_.root);
  }

  const Call& call() const { return call_; }
  std::uint64_t order() const { return order_; }
  std::size_t bytes() const { return total_; }
  /// The announcement to the receiver: its tag and type.
  std::uint32_t digest() const { return digest_of(call_.tag, call_.dtype); }
  /// Of a receive whose message was found otherwise: where it came from.
  void set_source(Rank source) { call_.root = source; }
  /// Once it is done.
  Rank peer() const { return call_.root; }

  static constexpr std::uint32_t digest_of(std::uint32_t tag, DType dtype) {
    return tag << 8 | tag >> 24 << 7 | static_cast<std::uint32_t>(dtype);
  }
  static std::uint32_t tag_of(std::uint32_t digest) {
    return digest >> 8 | (digest >> 7 & 1) << 24;
  }
  static DType dtype_of(std::uint32_t digest) { return static_cast<DType>(digest & 0x7f); }

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
  bool lent_ = false;  // a receive reads the sender's memory
};

}  // namespace anyccl
