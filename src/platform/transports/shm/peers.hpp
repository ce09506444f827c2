#pragma once
// The peer table knows the peers of one communicator with which this rank shares memory. It wakes
// them, describes to them memory that this rank lends, finds the bytes that they describe, and
// exchanges notices with them over links. The shm transport, its publications and its mailboxes
// call it.

#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "platform/transports/shm/connect.hpp"
#include "platform/transports/shm/windows.hpp"

namespace anyccl::shm {

/// The peers of one communicator: their doorbells, their sockets, and whose memory can be read
/// where.
class PeerTable {
 public:
  PeerTable(Rank me, const Layout& layout, std::shared_ptr<Segment> mine, std::vector<Peer> peers,
            ShmCopy copy);

  std::span<Peer> all() { return peers_; }
  std::span<const Rank> ranks() const { return ranks_; }
  Peer& of(std::uint32_t rank) { return peers_[of_rank_[rank]]; }
  ShmCopy copy() const { return copy_; }

  /// Wakes `peer`, should it sleep, after something was published for it. The fence between the two
  /// is the sleeper's; here only the compiler must keep the order.
  void ring(Peer& peer) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint32_t asleep =
        at<RankFlags>(peer.out, layout_.flags()).sleeping.load(std::memory_order_relaxed);
    if (asleep != kAwake) wake(peer, asleep);
  }
  /// All peers ring this rank when they have posted progress.
  void ask_for_progress() {
    for (Peer& peer : peers_)
      at<DoorbellPage>(peer.in, 0).progress_wanted.store(1, std::memory_order_seq_cst);
  }
  /// Wakes all peers that sleep, if one has asked for it, after progress was posted.
  void tell_progress() {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // as in ring()
    if (progress_wanted_->load(std::memory_order_relaxed) == 0) return;
    // Pairs with the store in ask_for_progress(): a peer that is seen here is seen to sleep.
    progress_wanted_->exchange(0, std::memory_order_seq_cst);
    for (Peer& peer : peers_) ring(peer);
  }
  /// Whether all peers have joined the fences.
  bool are_fenced() const;
  /// Those of other processes that have mapped the memory of this rank.
  std::vector<BlockReader> readers() const;
  /// Wakes `peer` on its sockets or its doorbell, as `asleep`, an Asleep, says.
  static void wake(Peer& peer, std::uint32_t asleep);
  static void ring_doorbell(std::atomic<std::uint32_t>& doorbell);

  /// From how many bytes on a peer reads private memory, unless the way of copying is forced.
  struct ReadsFrom {
    std::size_t thread, process;
  };
  static constexpr std::size_t kNever = ~std::size_t{0};
  /// How the readers find `memory`, if all of them can read it there; announces its window to all
  /// peers, if they do not know it. `total`: of sized ones.
  std::optional<Descriptor> lend(std::span<const std::byte> memory, std::uint64_t total,
                                 std::span<const ReaderOf> readers, ReadsFrom from);
  /// The part that a reader wants of a publication or message of `whole` bytes.
  struct Wanted {
    std::size_t offset, bytes, whole;
    bool sized;           ///< `total` is compared.
    std::uint64_t total;  ///< Bytes.
    std::byte* into;      ///< Null, or room for `bytes`.
  };
  /// The part that `want` names of what `d` describes; null: not yet, or there is a problem. Staged
  /// bytes are in `staged`. Nothing in the descriptor is trusted.
  const std::byte* follow(Peer& peer, const Descriptor& d, const Wanted& want,
                          std::span<const std::byte> staged);
  /// What follow() returns from now on is read until end_reads(), and stays mapped until then,
  /// whatever its owner says.
  void begin_reads() { reads_ = true; }
  /// Ends the reads, and unmaps the windows that peers have closed.
  void end_reads() {
    reads_ = false;
    if (has_closed_) unmap_closed();
  }
  /// Whether collectives read some peer's private memory with a system call.
  bool reads_by_cma() const;

  /// Once per call and message: has peers unmap what went back to the system, and now and then does
  /// the same.
  void maintain_windows() {
    windows_.close_returned();
    if (++calls_ % kReadNoticesEvery == 0) read_notices();
  }
  /// Keeps the first one; returns null.
  std::nullptr_t problem(Status status);
  /// One that lies with this rank: the peers get the same text, so it names the rank.
  std::nullptr_t own_problem(const Status& status);
  /// Shows all peers memory of this rank, see Transport::show().
  Result<ShownMemory> show(std::size_t read_bytes, std::size_t written_bytes);
  /// The memory that the peer has shown; of none, or of another size than ours: null.
  ShownMemory shown_by(std::uint32_t rank);
  /// Reads what the links hold; the first problem.
  Status check();
  /// Also who sleeps. Any thread.
  void tell_all(const ControlMessage& message);
  /// Nothing more will be said: after a failure, or at the end. end() may be called by any thread.
  void end(const Status& why);
  void say_goodbye();

 private:
  static constexpr std::uint64_t kReadNoticesEvery = 16;  // calls

  const std::byte* fetch(Peer& peer, std::uint64_t address, const Wanted& want);
  void read_notices();
  /// Takes in the notices of `peer`, and notes in its state if it has left or died.
  void pump(Peer& peer);
  /// Unmaps the windows that peers have closed, even if they are read: callers look at `reads_`.
  void unmap_closed();

  Rank me_;
  Layout layout_;
  std::vector<Peer> peers_;
  std::vector<std::size_t> of_rank_;  // index in peers_
  std::vector<Rank> ranks_;
  ShmCopy copy_;
  Windows windows_;
  std::shared_ptr<Shown> shown_;  // by this rank; null: nothing
  std::uint64_t calls_ = 0;
  bool reads_ = false;                           // between begin_reads() and end_reads()
  bool has_closed_ = false;                      // some peer has closed windows
  std::atomic<std::uint32_t>* progress_wanted_;  // peers set it
  Status problem_;
};

}  // namespace anyccl::shm
