#pragma once
// A transport carries the data of one communicator between a rank and some of its peers: over
// shared memory, TCP or unix sockets. The framework calls this interface with the progress lock of
// the communicator. Publications (collectives) and Messages (point-to-point) are its fast paths;
// the rest serves waits that take long, sleep, failures and the end.

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"
#include "base/deadline.hpp"
#include "platform/transport/call_record.hpp"
#include "platform/transport/messages.hpp"
#include "platform/transport/publications.hpp"

namespace anyccl {

enum class PeerState : std::uint8_t {
  present,
  left,    ///< Said goodbye: what it published before can still be read, nothing more will come.
  dead,    ///< Went without a word: what it published before can still be read.
  gone,    ///< It has left or died before this rank was connected with it.
  silent,  ///< Its host does not answer: see Config::ack_timeout_s.
};

/// What came of Transport::give_back(); later ones outweigh earlier ones.
enum class GivenBack : std::uint8_t {
  all,     ///< There is no more to give back, until it grows again.
  unread,  ///< Peers have not read yet what lies there.
  in_use,  ///< It was used since the last time.
};

/// What a rank sees of a peer's calls, when it waits for long.
struct PeerCalls {
  bool is_complete = false;         ///< Else the peer may have made later calls than these.
  std::uint64_t entered = 0;        ///< The last collective that it has entered; 0: none.
  std::uint64_t finished = 0;       ///< The last one that it is known to have finished.
  bool receives = false;            ///< It waits for a message,
  Rank receives_from = kAnySource;  ///< of this rank.
};

/// Memory of one rank that others use, too.
struct ShownMemory {
  std::byte* read = nullptr;     ///< Peers read it;
  bool is_here = false;          ///< those in this process can write it, too.
  std::byte* written = nullptr;  ///< Peers write it.
};

/// The way between this rank and some of its peers, in one communicator. Its own functions are
/// called when a wait takes long, never on the way of a fast operation.
///
/// Threads: one at a time, the holder of the communicator's progress lock; abort() and wake() alone
/// may be called by any thread.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;
  /// The peers it reaches, ascending.
  virtual std::span<const Rank> peers() const = 0;
  /// Both live as long as the transport.
  virtual Publications& publications() = 0;
  virtual Messages& messages() = 0;
  /// Bytes of memory that this rank has for it: what its peers can map, and buffers.
  virtual std::size_t memory_bytes() = 0;

  /// Gives memory back to the system that only larger publications need, if none came since the
  /// last time and peers have read all of them; the next one takes it again.
  virtual GivenBack give_back() { return GivenBack::all; }
  /// Calls the function, with the progress lock held, when there is something to give back: seldom.
  virtual void when_grown(std::function<void()> /*function*/) {}

  /// Shows every peer zeroed memory of this rank, whole pages of both kinds: once. It lives as long
  /// as the transport. Errors: unsupported, where ranks share none; system_error.
  virtual Result<ShownMemory> show(std::size_t /*read_bytes*/, std::size_t /*written_bytes*/) {
    return Status(Code::unsupported, "its transport shares no memory");
  }
  /// The memory that `peer` has shown, as far as check() knows; else null.
  virtual ShownMemory shown_by(Rank /*peer*/) { return {}; }

  // --- peers ------------------------------------------------------------------------------------
  /// Reads control messages, flushes what is queued. Not ok: the communicator must fail with it.
  virtual Status check() = 0;
  /// Whether what check() has reported says only that two calls differ: records, or a peer that
  /// stops because of it, may say more.
  virtual bool is_vague() const { return false; }
  virtual PeerState state(Rank peer) = 0;
  /// The end of a dead peer's process, as " (killed by signal 9, Killed)"; empty: nothing is known.
  virtual std::string how_ended(Rank /*peer*/) { return ""; }
  /// The record that `peer` has of call `sequence`, if it is known here. Sends ours to peers that
  /// may be waiting for it. `peer` may be this rank.
  virtual bool call_of(Rank peer, std::uint64_t sequence, CallRecord& record) = 0;

  // What check() and call_of() say, for a rank that waits for nothing: nothing is sent, and no news
  // cost next to nothing.
  virtual Status glance() { return check(); }
  virtual bool known_call_of(Rank peer, std::uint64_t sequence, CallRecord& record) {
    return call_of(peer, sequence, record);
  }

  /// The first collective of which this rank gave data to a peer that was gone by then, and cannot
  /// complete it; 0: none. A rank that only gives waits for nobody, and learns it from this.
  virtual std::uint64_t unread_by(Rank /*peer*/) const { return 0; }

  /// What can be seen here of the calls of `peer`. Asked for reports, not on any way to a result.
  virtual PeerCalls calls_of(Rank /*peer*/) { return {}; }
  /// This rank waits for a message of `from`, or does not any more: peers that ask can see it.
  virtual void show_receive(bool /*waits*/, Rank /*from*/) {}

  /// This rank waits for `peer`: what connects on demand connects now.
  virtual void expect(Rank /*peer*/) {}

  // --- sleep ------------------------------------------------------------------------------------
  // A rank with several transports sleeps in the last one, on the sockets of all.

  enum class Alarm : std::uint8_t {
    own,      ///< The rank sleeps in this transport.
    sockets,  ///< It sleeps in another one, which waits for append_alarms() too.
  };
  /// This rank is about to sleep: what a peer publishes from now on will end that. What it
  /// published before must be looked for once more, in between.
  virtual void prepare_sleep(Alarm /*alarm*/) {}
  /// The sockets on which this rank is woken, after prepare_sleep(Alarm::sockets).
  virtual void append_alarms(std::vector<pollfd>& alarms) = 0;
  /// Blocks until something may have arrived, here or on one of `others`, at most `most`; 0: it
  /// need not sleep any more. Of transports that network or unix sockets connect; the others have
  /// no `others`.
  virtual void sleep(std::chrono::nanoseconds most, std::span<const pollfd> others = {}) = 0;
  /// After a sleep in another transport.
  virtual void end_sleep() {}
  /// Whether that holds without fail for what this rank waits for, as far as it has tried since
  /// prepare_sleep(). Else sleeps must be short.
  virtual bool wakes_surely() const { return true; }
  /// Ends a sleep() that another thread is in. Any thread.
  virtual void wake() = 0;

  // --- the end ----------------------------------------------------------------------------------
  /// Tells every peer that this communicator has failed with `why`; waits for none. Any thread.
  virtual void abort(const Status& why) = 0;
  /// After abort(): waits until the kernel has what it said, at most 200 ms where a connection is
  /// full, and until peers' hosts have it, at most 50 ms. Reads and drops what peers still send.
  virtual void deliver_abort() {}
  /// Says goodbye to every peer and waits until peers' hosts have it, at most a second, and hardly
  /// longer than `deadline`.
  virtual void leave(Deadline deadline = Deadline::never()) = 0;
};

}  // namespace anyccl
