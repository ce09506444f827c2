#pragma once
// A flow is one context on one link, as one end of the link sees it: the arrivals, call records and
// notices of the peer, and the window. A window limits how many bytes a rank sends in a context
// before its peer asks for them. Headers of frames carry the credits of windows.

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <vector>

#include "base/unique_fd.hpp"
#include "platform/link/arrivals.hpp"
#include "platform/link/context.hpp"
#include "platform/transport/call_record.hpp"

namespace anyccl::link {

/// How much one rank may send another in one context before it is asked for. The receiver reads on
/// whatever happens, because other contexts share the link; the sender waits. A frame may always be
/// sent when nothing is under way, and when its receiver waits for it (kWant): so a window that is
/// full of frames that nobody asks for yet does not keep back the one that is needed.
///
/// Both sides count bytes from the beginning, each frame with its cost.
class Window {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{16} << 20;
  static std::uint64_t cost_of(std::size_t bytes) { return bytes + 128; }  // what keeping it takes

  // --- the sender, one thread; note_sent() and take_credit() with the link's lock ----------------
  bool has_room(const Key& key, std::size_t bytes) const {
    // With prepare_sleep(), pairs with take_credit() and note_delivered(): one of the two sees the
    // other.
    const std::uint64_t credit = credit_.load(std::memory_order_seq_cst);
    if (sent_ == credit || sent_ - credit + cost_of(bytes) <= kBytes) return true;
    return has_asked_.load(std::memory_order_acquire) && is_asked_for(key);
  }
  void note_sent(const Key& key, std::size_t bytes);
  /// What the receiver has consumed, as it says. False: that is more than was sent.
  bool take_credit(std::uint64_t consumed) {
    if (consumed > sent_) return false;
    if (consumed > credit_.load(std::memory_order_relaxed))
      credit_.store(consumed, std::memory_order_seq_cst);
    return true;
  }
  void note_asked(const Key& key);

  // --- the receiver, with the link's lock -------------------------------------------------------
  std::uint64_t held() const { return arrived_ - consumed_; }
  /// Whether a sender that keeps to the rules may send this now.
  bool allows(const Key& key, std::size_t bytes) const {
    return held() == 0 || held() + cost_of(bytes) <= kBytes ||
           std::find(wanted_.begin(), wanted_.end(), key) != wanted_.end();
  }
  void note_arrived(const Key& key, std::size_t bytes);
  /// It has not come whole, and comes once more.
  void note_not_arrived(const Key& key, std::size_t bytes);
  void note_consumed(std::size_t bytes) { consumed_ += cost_of(bytes); }
  /// Whether the sender should be told without waiting for a frame that goes there.
  bool owes_credit() const { return consumed_ - told_ >= kBytes / 4; }
  /// The credit for a frame that goes to the sender now.
  std::uint64_t tell() { return told_ = consumed_; }
  /// Whether the sender does not know all that was consumed.
  bool hides_credit() const { return consumed_ != told_; }
  /// Whether the sender may be waiting, and does not know yet that `key` is waited for. If so,
  /// counts `key` as asked for: the next call says no.
  bool should_ask(const Key& key);

 private:
  static constexpr std::size_t kMostAsked = 64;
  bool is_asked_for(const Key& key) const;

  std::uint64_t sent_ = 0;
  std::atomic<std::uint64_t> credit_{0};
  mutable std::mutex asked_mutex_;
  std::vector<Key> asked_;  // Asked for by the receiver, and not sent yet.
  std::atomic<bool> has_asked_{false};

  std::uint64_t arrived_ = 0, consumed_ = 0, told_ = 0;
  std::vector<Key> wanted_;  // From the sender, and not here yet.
};

/// A message of a transport that has arrived.
struct Notice {
  std::vector<std::byte> payload;
  std::vector<UniqueFd> descriptors;
};

/// One context on one link. Threads: the holder of the link's lock, except for the window's sending
/// half and is_over().
struct Flow {
  explicit Flow(ContextKey k) : key(k) {}

  const ContextKey key;
  Context* context = nullptr;        ///< Null until it is opened here, and once it is closed.
  Rank peer{};                       ///< In that context.
  bool closed = false;               ///< What still comes is dropped.
  bool left = false;                 ///< This rank needs the link for it no more.
  std::atomic<bool> goodbye{false};  ///< From the peer: nothing more comes.
  std::atomic<bool> aborted{false};  ///< The peer has, and nothing more comes.
  Arrivals arrivals;
  std::array<CallRecord, kCallHistory> calls{};  ///< The newest received; sequence 0: none.
  std::uint64_t newest = 0;                      ///< Operation of which something has come.
  std::list<Notice> notices;
  std::vector<std::byte> last_words;  ///< An abort's, that came before the context was opened.
  Window window;

  bool is_over() const { return goodbye || aborted; }
  /// Counts a frame as consumed, and gives its buffer back: it was taken out of `arrivals`, because
  /// it was read or is of no interest any more.
  void drop(Arrival arrival);
};

}  // namespace anyccl::link
