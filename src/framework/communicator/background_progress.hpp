#pragma once
// Operations that nobody waits for go on in a thread of the library. A process has one for all its
// communicators.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/condition.hpp"
#include "framework/communicator/pending_operation.hpp"

namespace anyccl {

/// The background thread of a process: makes progress on communicators with operations that were
/// issued and that nobody waits for, and tells when they are done. It starts with the first one and
/// sleeps while there are none. Where somebody waits, it stands back. It also gives back memory
/// that communicators have not used for a while.
///
/// Threads: any.
class BackgroundProgress {
 public:
  /// How long memory is not used before it is given back. Also the time between two looks, which
  /// grows where peers do not read, up to kRareLook.
  static constexpr std::chrono::milliseconds kUnused{5000}, kRareLook{60000};
  explicit BackgroundProgress(std::chrono::milliseconds unused = kUnused) : unused_(unused) {}

  /// Goes on with `comm` until nothing is open there. Errors: system_error (no thread).
  Status add(const std::shared_ptr<Comm>& comm);
  /// Calls function(argument) when `operation` is done or `comm` has failed: here and now if that
  /// is so, else in the background thread. Errors: system_error (no thread).
  Status notify(const std::shared_ptr<Comm>& comm, std::shared_ptr<Operation> operation,
                void (*function)(void*), void* argument);
  /// Looks every millisecond whether peers put something into windows of `comm`, as long as it has
  /// any; goes on with it then. Errors: system_error (no thread).
  Status listen(const std::shared_ptr<Comm>& comm);
  /// Calls `chore` each `pause` from now on, which is after the one before. Best effort: without a
  /// thread nothing does.
  void repeat(std::chrono::milliseconds pause, std::function<void()> chore);
  /// There is memory that CommMemory::give_back() may give back, later. Best effort: without a
  /// thread it stays.
  void give_back_later(const std::weak_ptr<Comm>& comm);
  /// From now on the thread does not touch `comm`, unless it is added again.
  void forget(const Comm& comm);
  /// Forgets what give_back_later() was told of `comm`, and no more: waits for nothing else that
  /// the thread may be doing, such as functions of the program.
  void forget_memory(const Comm& comm);
  /// At exit: the thread ends, unless it takes longer than until `deadline`.
  void stop(Deadline deadline);

 private:
  using CommPtr = std::shared_ptr<Comm>;
  struct Chore {
    std::chrono::milliseconds pause;
    std::function<void()> run;
    std::chrono::steady_clock::time_point due;
  };
  struct Note {
    std::shared_ptr<Comm> comm;
    std::shared_ptr<Operation> operation;
    void (*function)(void*);
    void* argument;
    bool due() const { return PendingOperation{comm, operation}.is_over(); }
  };

  /// A communicator that has something to give back.
  struct Tenant {
    std::weak_ptr<Comm> comm;  // it may be at its end
    std::chrono::milliseconds pause;
    std::chrono::steady_clock::time_point due;
    bool is(const std::weak_ptr<Comm>& other) const {
      return !comm.owner_before(other) && !other.owner_before(comm);
    }
  };

  Status start_locked();
  void add_tenant(const std::weak_ptr<Comm>& comm, std::chrono::milliseconds pause);
  void forget_tenant(const Comm& comm);
  void sleep_until_needed(std::unique_lock<std::mutex>& lock);
  void give_back(std::unique_lock<std::mutex>& lock);
  void do_chores(std::unique_lock<std::mutex>& lock);
  void look_again();
  bool is_watched() const { return !open_.empty() || !notes_.empty(); }
  void await_turn(std::unique_lock<std::mutex>& lock, int& idle_polls);
  void look(const std::vector<CommPtr>& comms, bool watched, int& idle_polls);
  void sleep(const std::vector<CommPtr>& comms, int idle_polls);
  void sort_out();
  std::vector<CommPtr> to_look_at() const;
  void work();
  bool tell(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  Condition changed_, turned_;
  std::vector<CommPtr> open_;
  std::vector<CommPtr> listening_;  // see listen()
  std::vector<Note> notes_;
  std::vector<Tenant> tenants_;
  std::deque<Chore> chores_;           // which stay where they are
  const Comm* giving_back_ = nullptr;  // which is asked at this moment, without the lock
  const std::chrono::milliseconds unused_;
  CommPtr only_;                     // where the thread may sleep for longer
  bool notes_wait_ = false;          // the thread's: whether there are notes
  std::atomic<bool> called_{false};  // look_again() was, since the thread began its turn
  bool running_ = false, stopping_ = false, in_turn_ = false;
  std::uint64_t turn_ = 0;  // the number of the last one
  std::thread::id worker_;
};

}  // namespace anyccl
