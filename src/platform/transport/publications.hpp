#pragma once
// Publications are the data path of collectives: each rank publishes blocks of bytes for some of
// its peers, and reads theirs. Each transport implements this interface. The framework calls it
// when it executes a collective.

#include <cstddef>
#include <cstdint>
#include <span>

#include "anyccl/types.hpp"
#include "platform/transport/call_record.hpp"

namespace anyccl {

/// Lanes whose progress a rank can post; see Publications::post().
inline constexpr std::uint32_t kMostLanes = 8;

/// The bytes that fit next to the sequence word in one cache line.
inline constexpr std::size_t kLineBytes = 56;

/// Smaller publications are never lent: copying costs less than waiting for the readers.
inline constexpr std::size_t kLendFrom = 16384;

/// A rank that reads a publication, and the progress of that rank by which it has surely read it.
struct ReaderOf {
  std::uint16_t rank = 0;
  std::uint32_t tick = 0;             ///< Progress within the operation and lane.
  std::size_t offset = 0, bytes = 0;  ///< The part of the publication that this reader reads.
};

/// A publication of this rank.
struct Outgoing {
  std::uint64_t operation = 0;
  std::uint32_t number = 0;  ///< Within the operation.
  std::uint32_t lane = 0;
  std::uint32_t digest = 0;  ///< The call's: readers with another digest refuse the data.
  bool sized = false;        ///< The readers cannot know `bytes`: it is sent along and compared.
  /// LL and LL128: up to so many bytes are in the slot, if there are slots. Both sides have the
  /// same number, which is no greater than TransportSetup::line_bytes.
  std::uint16_t line_bytes = kLineBytes;
  std::size_t bytes = 0;
  std::uint64_t total = 0;            ///< If `sized`: bytes of the whole block of this pair.
  std::span<const ReaderOf> readers;  ///< This transport's only; alive until the call returns.
};

/// A publication of a peer that this rank wants to read.
struct Incoming {
  std::uint64_t operation = 0;
  std::uint32_t number = 0;
  std::uint32_t digest = 0;
  std::uint16_t poll_budget = 1;  ///< How often poll may look, where looking costs nanoseconds.
  std::uint16_t rank = 0;
  std::uint16_t line_bytes = kLineBytes;  ///< As Outgoing has it.
  bool sized = false;
  std::size_t offset = 0, bytes = 0;  ///< The part wanted.
  std::size_t whole = 0;              ///< Bytes of the whole publication (not of v-forms).
  std::uint64_t total = 0;            ///< If `sized`: what this rank expects of the whole block.
  /// If not null: the bytes may be put here directly; then poll() returns it.
  std::byte* into = nullptr;
};

/// This interface knows nothing of collectives: the executor says which bytes to publish for which
/// peers and which to wait for.
///
/// Threads: one at a time, the holder of the communicator's progress lock.
class Publications {
 public:
  struct Abilities {
    /// offer() takes any memory: then computed results are offered as well, not only what is sent.
    bool takes_any_memory = false;
    /// poll() may have to copy what a peer lent: an Incoming needs an `into` if the whole
    /// publication has at least kLendFrom bytes.
    bool needs_landing = false;
    /// Small publications lie in slots: the protocols LL and LL128.
    bool has_slots = false;
  };
  virtual ~Publications() = default;
  const Abilities& abilities() const { return abilities_; }

  /// Announces the call that the publications since the last one finished belong to: for peers that
  /// want to know why nothing fits, so at the latest before this rank waits for one.
  virtual void announce(const CallRecord& call) = 0;
  /// Announces a call in which this rank reads nothing, before its first publication: the rank may
  /// be gone before a peer asks.
  virtual void announce_first(const CallRecord& call) { announce(call); }

  // --- publishing -------------------------------------------------------------------------------
  /// Whether offer() would take `bytes` bytes at `memory`: then a result that is stored there needs
  /// no room of the transport's own. By default as Abilities::takes_any_memory says.
  virtual bool would_take(std::size_t /*bytes*/, const std::byte* /*memory*/,
                          bool /*lendable*/) const {
    return abilities_.takes_any_memory;
  }
  enum class Offered : std::uint8_t {
    refused,  ///< Not possible for this memory: use reserve() and publish().
    busy,     ///< No room now: call again.
    copied,   ///< Published, and the caller may change its memory.
    lent,     ///< Published, and readers read the caller's memory until settled().
  };
  /// Tries to hand over `out` straight from the caller's memory at `source` (source[0, out.bytes)).
  virtual Offered offer(const Outgoing& out, const std::byte* source, bool lendable) = 0;
  /// Room for out.bytes bytes, aligned to 8, or null if there is none yet. Then the caller writes
  /// the bytes and calls publish() with the same `out`, with no other call in between.
  virtual std::byte* reserve(const Outgoing& out) = 0;
  virtual void publish(const Outgoing& out) = 0;

  // --- reading ----------------------------------------------------------------------------------
  /// The wanted part, or null while it is not there. It may be read until consumed() is called for
  /// it or progress is posted past it. Problems (another digest, another size, a malformed frame)
  /// keep it null and are reported by Transport::check().
  virtual const std::byte* poll(const Incoming& in) = 0;
  /// Done with what poll() returned for `in`.
  virtual void consumed(const Incoming& in) = 0;

  // --- progress ---------------------------------------------------------------------------------
  /// This rank has read everything up to `tick` in `lane` of `operation`.
  virtual void post(std::uint64_t operation, std::uint32_t lane, std::uint32_t tick) = 0;
  /// This rank has finished `operation`. `everyone`: so its peers have finished operation - 1.
  /// Returns settled().
  virtual bool finished(std::uint64_t operation, bool everyone) = 0;
  /// Whether no peer needs this rank's private memory or its help any more for what it published.
  virtual bool settled() = 0;
  /// Whether it may be this peer that settled() waits for.
  virtual bool is_behind(Rank peer) = 0;

 protected:
  explicit Publications(Abilities abilities) : abilities_(abilities) {}

 private:
  const Abilities abilities_;
};

}  // namespace anyccl
