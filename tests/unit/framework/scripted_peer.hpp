#pragma once
// A test writes the messages of such a peer, and sees what it is sent.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "platform/transport/message_digest.hpp"
#include "platform/transport/messages.hpp"

namespace anyccl::test {

using Bytes = std::vector<std::byte>;

/// One peer, as a rank hears it and is heard by it: messages of one fragment each.
class ScriptedPeer final : public Messages {
 public:
  /// `is_eager`: its messages can be received at once.
  explicit ScriptedPeer(bool is_eager = false) : is_eager_(is_eager) {}
  void say(std::uint32_t tag, DType dtype, Bytes bytes) {
    say(message_digest::of(tag, dtype), std::move(bytes));
  }
  void say(std::uint64_t digest, Bytes bytes) { said_.push_back({digest, std::move(bytes)}); }
  bool was_heard() const { return said_.empty(); }

  struct Message {
    std::uint64_t digest;
    Bytes bytes;
  };
  bool listens = false;        ///< It takes what it is sent.
  std::vector<Message> taken;  ///< What that was.

  std::size_t fragment_bytes() const override { return std::size_t{1} << 30; }
  Sent send(const Fragment& out, const std::byte* source) override {
    if (!listens) return Sent::busy;
    taken.push_back({out.digest, Bytes(source, source + out.bytes)});
    return Sent::copied;
  }
  bool settled(Rank) override { return true; }
  bool peek(Rank, std::uint64_t, Envelope& envelope) override {
    if (said_.empty()) return false;
    envelope = {said_.front().digest, said_.front().bytes.size(), false};
    return true;
  }
  bool receive(const Fragment& in, std::size_t, std::byte* into) override {
    if (said_.empty() || said_.front().digest != in.digest ||
        said_.front().bytes.size() != in.total)
      return false;
    if (in.bytes > 0) std::memcpy(into, said_.front().bytes.data(), in.bytes);
    said_.pop_front();
    return true;
  }
  bool receive_at_once(Rank from, std::uint64_t digest, std::uint32_t,
                       std::span<std::byte> message) override {
    return is_eager_ &&
           receive(
               {.peer = from, .digest = digest, .bytes = message.size(), .total = message.size()},
               0, message.data());
  }

 private:
  bool is_eager_;
  std::deque<Message> said_;
};

}  // namespace anyccl::test
