#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"

namespace anyccl {

// A transport moves publications between this rank and some of its peers, in one communicator. It
// knows nothing of collectives: the executor tells it which bytes to publish for whom and which to
// wait for. All calls come from one thread at a time (the holder of the communicator's progress
// lock); abort() and wake() alone may come from any thread.

/// What one rank called: compared between ranks before data is believed. 40 bytes, sent as it is.
struct CallRecord {
  std::uint64_t sequence = 0;  ///< Number of the operation in its communicator, from 1.
  std::uint8_t collective = 0, dtype = 0, op = 0, unused = 0;
  std::int32_t root = 0;
  std::uint64_t count = 0;  ///< Elements; 0 for v-forms, whose pairs are compared at the receiver.
  std::uint64_t plan = 0;   ///< Identity of the plan: algorithm, protocol, tile.
  std::uint64_t history = 0;  ///< Digest of all calls before this one.
  bool operator==(const CallRecord&) const = default;
};
static_assert(sizeof(CallRecord) == 40);

/// How many calls back a peer's record can still be asked for.
inline constexpr std::uint32_t kCallHistory = 8;

/// Lanes whose progress a rank can post; see Transport::post().
inline constexpr std::uint32_t kMostLanes = 4;

/// What fits beside the sequence word in one cache line.
inline constexpr std::size_t kLineBytes = 56;

/// Smaller publications are never lent: copying costs less than waiting for the readers.
inline constexpr std::size_t kLendFrom = 16384;

/// Operations of a communicator and point-to-point messages of one pair are numbered on their own.
enum class Context : std::uint8_t { collective, point_to_point };

/// Who reads a publication, and by which progress of theirs it is surely read.
struct ReaderOf {
  std::uint16_t rank = 0;
  std::uint32_t tick = 0;             ///< Progress within the operation and lane.
  std::size_t offset = 0, bytes = 0;  ///< The part of the publication that this reader reads.
};

/// A publication of this rank.
struct Outgoing {
  /// Collective: the operation. Point-to-point: the message, per pair.
  std::uint64_t operation = 0;
  std::uint32_t number = 0;  ///< Collective: within the operation. Point-to-point: the fragment.
  std::uint32_t lane = 0;
  std::uint32_t digest = 0;  ///< Of the call: readers with another digest refuse the data.
  Context context = Context::collective;
  bool sized = false;  ///< The reader cannot know `bytes`: it is sent along and compared.
  std::size_t bytes = 0;
  std::uint64_t total = 0;            ///< If `sized`: bytes of the whole message of this pair.
  std::span<const ReaderOf> readers;  ///< Of this transport only; alive until the call returns.
};

/// A publication of a peer that this rank wants to read.
struct Incoming {
  std::uint64_t operation = 0;
  std::uint32_t number = 0;
  std::uint32_t digest = 0;
  std::uint32_t poll_budget = 1;  ///< How often poll may look, where looking costs nanoseconds.
  std::uint16_t rank = 0;
  Context context = Context::collective;
  bool sized = false;
  std::size_t offset = 0, bytes = 0;  ///< The part wanted.
  std::size_t whole = 0;    ///< Bytes of the whole publication or fragment (not of v-forms).
  std::uint64_t total = 0;  ///< If `sized`: what this rank expects of the whole message.
  /// If not null: the bytes may be put here directly (then poll returns it). See needs_landing().
  std::byte* into = nullptr;
};

/// What is known of a point-to-point message before it is read.
struct Envelope {
  std::uint32_t digest = 0;
  std::uint64_t total = 0;  ///< Bytes.
  bool whole = false;       ///< It comes as one fragment, however long it is.
};

enum class PeerState : std::uint8_t {
  present,
  left,  ///< Said goodbye: what it published before can still be read, nothing more will come.
  dead,  ///< Went without a word: what it published before can still be read.
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;
  /// The peers it reaches, ascending.
  virtual std::span<const Rank> peers() const = 0;

  // --- publishing -------------------------------------------------------------------------------
  /// Announces the call that the publications since the last one finished belong to: for peers that
  /// want to know why nothing fits, so at the latest before this rank waits for one.
  virtual void begin(const CallRecord& call) = 0;
  /// Whether offer() takes any memory: then computed results are offered too, not only what is
  /// sent.
  virtual bool takes_any_memory() const { return false; }
  /// Whether poll() may have to copy what a peer lent to a collective: then what it is asked for
  /// must have an `into` if the whole publication has at least kLendFrom bytes.
  virtual bool needs_landing() const { return false; }
  /// Whether offer() would take `bytes` bytes at `memory`: then a result that is stored there needs
  /// no room of the transport's own.
  virtual bool would_take(std::size_t, const std::byte* /*memory*/, bool /*lendable*/) const {
    return takes_any_memory();
  }
  /// Tries to hand over `out` straight from the caller's memory at `source` (source[0, out.bytes)).
  enum class Offered : std::uint8_t {
    refused,  ///< Not possible for this memory: use reserve() and publish().
    busy,     ///< No room now: call again.
    copied,   ///< Published, and the caller may change its memory.
    lent,     ///< Published, and readers read the caller's memory until settled().
  };
  virtual Offered offer(const Outgoing& out, const std::byte* source, bool lendable) = 0;
  /// Room for out.bytes bytes, aligned to 8, or null if there is none yet. Then the caller writes
  /// the bytes and calls publish() with the same `out`, with no other call in between.
  virtual std::byte* reserve(const Outgoing& out) = 0;
  virtual void publish(const Outgoing& out) = 0;
  /// Tries to publish a whole message straight from the caller's memory: its reader reads it there
  /// until settled(reader). False: not possible, or not now; it goes in fragments then.
  virtual bool lend_message(const Outgoing& /*out*/, const std::byte* /*source*/) { return false; }
  /// Sends a short message, if that needs no waiting; false: nothing has happened. `digest`: as in
  /// Outgoing. What it sends is the next message to `to`.
  virtual bool send_at_once(Rank /*to*/, std::uint32_t /*digest*/,
                            std::span<const std::byte> /*message*/) {
    return false;
  }
  /// The most bytes of one point-to-point fragment.
  virtual std::size_t fragment_bytes() const = 0;

  // --- reading ----------------------------------------------------------------------------------
  /// Whether the first fragment of point-to-point message `message` of `from` is there, and what is
  /// known of it then. Asked before the first poll() of each message.
  virtual bool peek(Rank from, std::uint64_t message, Envelope& envelope) = 0;
  /// Reads the next message of `from`, if it is short, is there, and has just this digest and size;
  /// false: nothing has happened. `poll_budget`: as in Incoming.
  virtual bool receive_at_once(Rank /*from*/, std::uint32_t /*digest*/,
                               std::uint32_t /*poll_budget*/, std::span<std::byte> /*message*/) {
    return false;
  }
  /// The wanted part, or null while it is not there. It may be read until consumed() is called for
  /// it or progress is posted past it. Problems (another digest, another size, a malformed frame)
  /// keep it null and are reported by check().
  virtual const std::byte* poll(const Incoming& in) = 0;
  /// Done with what poll() returned for `in`.
  virtual void consumed(const Incoming& in) = 0;

  // --- progress ---------------------------------------------------------------------------------
  /// This rank has read everything up to `tick` in `lane` of `operation`.
  virtual void post(std::uint64_t operation, std::uint32_t lane, std::uint32_t tick) = 0;
  /// This rank has finished `operation`. `everyone`: so its peers have finished operation - 1.
  /// Returns settled().
  virtual bool finished(std::uint64_t operation, bool everyone) = 0;
  /// Whether no peer needs this rank's private memory or its help any more for what it published,
  /// messages left aside.
  virtual bool settled() = 0;
  /// The same for messages, to this peer.
  virtual bool settled(Rank /*reader*/) { return settled(); }
  /// Whether it may be this peer that settled() waits for.
  virtual bool is_behind(Rank peer) = 0;

  // --- slow path: called when a wait takes long, never on the way of a fast operation ------------
  /// Reads control messages, flushes what is queued. Not ok: the communicator must fail with it.
  virtual Status check() = 0;
  /// Whether what check() has reported says only that two calls differ: records, or a peer that
  /// stops because of it, may say more.
  virtual bool is_vague() const { return false; }
  virtual PeerState state(Rank peer) = 0;
  /// The record that `peer` has of call `sequence`, if it is known here. Sends ours to peers that
  /// may be waiting for it. `peer` may be this rank.
  virtual bool call_of(Rank peer, std::uint64_t sequence, CallRecord& record) = 0;
  /// This rank is about to sleep(): what a peer publishes from now on will end that. What it
  /// published before must be looked for once more, in between.
  virtual void prepare_sleep() {}
  /// Blocks until something may have arrived, at most `most`; 0: it need not sleep any more.
  virtual void sleep(std::chrono::nanoseconds most) = 0;
  /// Whether that holds without fail for what this rank waits for, as far as it has tried since
  /// prepare_sleep(). Else sleeps must be short.
  virtual bool wakes_surely() const { return true; }
  /// Ends a sleep() that another thread is in. Any thread.
  virtual void wake() = 0;

  // --- the end ----------------------------------------------------------------------------------
  /// Tells every peer that this communicator has failed with `why`; never blocks. Any thread.
  virtual void abort(const Status& why) = 0;
  /// Says goodbye to every peer and flushes what is queued, within a bounded time.
  virtual void leave() = 0;
};

}  // namespace anyccl
