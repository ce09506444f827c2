#pragma once
// One-sided operations: puts into windows, signals, and waits for signals.
//
// 1. Peers map this rank's memory read-only, so a put is a message that its target moves into the
//    window, without a receive, whenever it makes progress. See put_message.hpp.
// 2. Puts and signals of a pair land in the order of their calls: they are messages of the pair.
// 3. A wait takes its signals at its call: it is over when as many have arrived as it and all waits
//    before it want together. So signals go to waits in the order of their calls.
// 4. Of what arrives nothing is believed: see place_of_next() and landed().
// 5. Ranks count the puts to each peer, so that one that gives up a window knows what is still to
//    come.

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "base/fifo.hpp"
#include "framework/message/arrival_wait.hpp"
#include "framework/message/put_message.hpp"
#include "platform/transport/messages.hpp"

namespace anyccl {

/// The windows, signals and waits of one rank of a communicator.
///
/// Threads: the holder of the communicator's progress lock.
class OneSided {
 public:
  /// `open`: counts everything for which the communicator must look at its peers' messages; what is
  /// here adds to it.
  OneSided(Rank me, int size, std::size_t& open);
  ~OneSided();
  OneSided(const OneSided&) = delete;
  OneSided& operator=(const OneSided&) = delete;

  // --- windows ----------------------------------------------------------------------------------
  /// Memory that peers may put into from now on. Its number is equal on all ranks if they open
  /// windows in the same order.
  std::uint32_t open_window(std::byte* at, std::size_t bytes);
  /// `sizes[r]`: the bytes that rank r has in the window.
  void set_sizes(std::uint32_t window, std::vector<std::size_t> sizes);
  /// No put is started here from now on, and those that come are wanted from every rank.
  void begin_closing(std::uint32_t window);
  /// Not ok: a put was landing there, which its origin did not count.
  Status close_window(std::uint32_t window);
  void close_all();
  bool has_windows() const { return !windows_.empty(); }
  /// How many of what the constructor's `open` counts are there to be looked at for ever.
  std::size_t standing() const { return windows_.empty() ? 0 : 1; }

  // --- calls ------------------------------------------------------------------------------------
  /// Whether the arguments make sense. Errors: invalid_argument, invalid_usage.
  Status check(const OneSidedCall& call) const;
  /// A put or a signal is on its way to `peer`.
  void count_sent(Rank peer) { ++peer_of(peer).sent; }
  /// How many those were, by peer.
  std::vector<std::uint64_t> sent() const;
  /// A put or signal of this rank to itself. Null: it is done.
  std::shared_ptr<Operation> put_to_itself(const OneSidedCall& call, Gate gate);
  /// Returns a wait for the next signals, as many as each of `signals` says, which no later wait
  /// gets.
  std::shared_ptr<ArrivalWait> take_signals(std::span<const anycclWaitSignalDesc_t> signals,
                                            Gate gate);
  /// A wait until as many puts and signals of each rank have landed.
  std::shared_ptr<ArrivalWait> wait_for_landed(const std::vector<std::uint64_t>& counts);
  /// It goes on with advance().
  void add(const std::shared_ptr<ArrivalWait>& wait);
  /// It is over, and nobody but the caller has it.
  void recycle(std::shared_ptr<ArrivalWait> wait) { spare_ = std::move(wait); }

  // --- what arrives -----------------------------------------------------------------------------
  /// Whether to look for messages of a rank that no receive wants.
  bool looks() const { return looks_ || !windows_.empty() || !waits_.empty(); }
  /// Whether looks() also says so for a while, for a wait that was not added.
  void look(bool looks) { looks_ = looks; }
  /// Whether messages that block others of `from` must be moved out of the way.
  bool must_clear_way(Rank from) const;
  /// Whether a message with this tag is no receive's.
  bool expects(Rank from, std::uint32_t tag) const {
    return tag == kPutTag || tag == kPutBytesTag || is_followed(from);
  }
  /// Where the next message of `from` goes to: a header into a room of that peer, what the header
  /// has announced into the window. Empty: it is refused, see problem().
  std::span<std::byte> place_of_next(Rank from, const Envelope& envelope);
  /// The message fills that place: a header is checked and its short put moved into the window, and
  /// what is complete is counted. Otherwise see problem().
  void landed(Rank from);
  /// The problem of a message that came, or ok.
  const Status& problem() const { return problem_; }

  /// Goes on as far as possible; true if anything moved.
  bool advance() { return !(own_.empty() && waits_.empty()) && advance_all(); }
  /// Appends the waits whose gate is open.
  void append_waiting(std::vector<std::shared_ptr<Operation>>& operations) const;
  /// Completes everything with `why`; nothing lands any more.
  void end(const Status& why);
  /// Completes all waits with `why`. The caller knows that only this rank itself could end them.
  void end_own(const Status& why);

 private:
  struct Window {
    std::byte* at;
    std::size_t bytes;
    std::vector<std::size_t> sizes;
    bool closing = false;
  };
  struct Signal {
    std::uint64_t arrived = 0, taken = 0;
  };
  using Signals = std::array<Signal, kSignals>;
  /// The arrivals from one peer.
  struct Incoming {
    std::array<std::byte, kMostPutMessage> message;
    std::size_t bytes = 0;     // of the message
    PutHeader put;             // the one that the next message belongs to
    bool is_followed = false;  // there is one
  };
  struct Peer {
    std::uint64_t sent = 0, landed = 0;  // puts and signals
    std::unique_ptr<Incoming> incoming;  // made when first used
  };
  struct Waiting {
    std::shared_ptr<ArrivalWait> wait;
    bool counted;  // in open_, as it needs peers
  };
  /// A put of this rank to itself that has to wait for its stream.
  class OwnPut;

  bool is_followed(Rank from) const {
    if (peers_.empty()) return false;
    const std::unique_ptr<Incoming>& incoming = peers_[uindex(from)].incoming;
    return incoming != nullptr && incoming->is_followed;
  }
  /// Where it is from then on.
  Peer& peer_of(Rank peer) {
    if (peers_.empty()) peers_.resize(static_cast<std::size_t>(size_));
    return peers_[uindex(peer)];
  }
  Status check_peer(const char* where, Rank peer, int signal, int context) const;
  Status check_put(const OneSidedCall& call) const;
  Status check_arrived(Rank from, const PutHeader& put, std::size_t message) const;
  Status check_wait(const OneSidedCall& call) const;
  Status check_followed(Rank from, const Envelope& envelope) const;
  Status no_window(Rank from, const PutHeader& put) const;
  void note_problem(Status why);
  Signal& signal(Rank from, int context, int index);
  /// Counts a put or signal as landed. Each raises the signal that `put` names.
  void count_arrival(Rank from, const PutHeader& put);
  void do_put_to_itself(const PutHeader& put, const std::byte* input);
  bool needs_peer(const ArrivalWait& wait) const;
  /// Does the puts of this rank to itself whose gate is open, and goes on with the waits.
  bool advance_all();

  const Rank me_;
  const int size_;
  std::size_t& open_;
  std::map<std::uint32_t, Window> windows_;
  std::uint32_t last_window_ = 0;
  int closing_ = 0;  // windows
  bool looks_ = false;
  std::vector<std::unique_ptr<Signals>> signals_;  // by peer and context; made when first used
  std::vector<Peer> peers_;                        // of all ranks; made when first used
  Fifo<std::shared_ptr<OwnPut>> own_;
  std::vector<Waiting> waits_;
  std::shared_ptr<ArrivalWait> spare_;
  Status problem_;
};

}  // namespace anyccl
