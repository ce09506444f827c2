#pragma once
// Messages are the point-to-point path of a transport. A message is sent in fragments, and messages
// come in the order of their sends. Each transport implements this interface, and the framework's
// code for messages calls it.

#include <cstddef>
#include <cstdint>
#include <span>

#include "anyccl/types.hpp"

namespace anyccl {

/// A fragment of a message between this rank and one peer. Messages of a pair and direction are
/// numbered from 1, fragments of a message from 0. An empty message is one empty fragment.
struct Fragment {
  Rank peer{};
  std::uint64_t digest = 0;   ///< Made of tag and data type.
  std::uint64_t message = 0;  ///< Its number.
  std::uint32_t number = 0;
  std::size_t bytes = 0;
  /// Bytes of the whole message. If its data goes another way, it is one fragment without bytes.
  std::uint64_t total = 0;
};

/// The facts about a message that are known before it is read.
struct Envelope {
  std::uint64_t digest = 0;
  std::uint64_t total = 0;  ///< Bytes.
  bool lent = false;        ///< The receiver reads it from the sender's memory.
};

/// Point-to-point messages between this rank and its peers. A message that its receiver does not
/// take yet holds back its sender, sooner or later.
///
/// Threads: one at a time, the holder of the communicator's progress lock.
class Messages {
 public:
  virtual ~Messages() = default;
  /// The most bytes of a fragment.
  virtual std::size_t fragment_bytes() const = 0;

  // --- sending ----------------------------------------------------------------------------------
  enum class Sent : std::uint8_t {
    busy,    ///< No room now, or the peer is gone: nothing has happened.
    copied,  ///< Sent, and the caller may change its memory.
    lent,    ///< The whole message is sent: its reader reads it at `source` until settled(peer).
  };
  /// Sends the next fragment, source[0, out.bytes); of the first one, source[0, out.total) can be
  /// read.
  virtual Sent send(const Fragment& out, const std::byte* source) = 0;
  /// Sends a short message, if that needs no waiting; false: nothing has happened. It is the next
  /// message to `to`.
  virtual bool send_at_once(Rank /*to*/, std::uint64_t /*digest*/,
                            std::span<const std::byte> /*message*/) {
    return false;
  }
  /// Whether `reader` lives and needs this rank's private memory or its help no more for what was
  /// sent to it.
  virtual bool settled(Rank reader) = 0;

  // --- receiving --------------------------------------------------------------------------------
  /// Whether the first fragment of message `message` of `from` is there, and what is known of it
  /// then. Asked before the first receive() of each message.
  virtual bool peek(Rank from, std::uint64_t message, Envelope& envelope) = 0;
  /// Copies the next fragment to into[0, in.bytes) if it is there; of a lent message, the next
  /// in.bytes bytes, which begin at `offset`. False: it is not there, or there is a problem
  /// (another digest, another size), which Transport::check() reports.
  virtual bool receive(const Fragment& in, std::size_t offset, std::byte* into) = 0;
  /// Reads the next message of `from`, if it is short, is there, and has just this digest and size;
  /// false: nothing has happened. `poll_budget`: as in Incoming.
  virtual bool receive_at_once(Rank /*from*/, std::uint64_t /*digest*/,
                               std::uint32_t /*poll_budget*/, std::span<std::byte> /*message*/) {
    return false;
  }
};

}  // namespace anyccl
