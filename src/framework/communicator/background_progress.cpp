#include "framework/communicator/background_progress.hpp"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <thread>

#include "base/callback.hpp"
#include "base/cpu.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"
#include "framework/communicator/comm_memory.hpp"

namespace anyccl {
namespace {

/// How often it looks without success before it sleeps: some tens of microseconds. It shares the
/// cores with whoever computes, and a peer that publishes wakes it.
constexpr int kIdlePolls = 200, kTired = kIdlePolls + 10;
/// How long it sleeps where another thread waits: not long if somebody is to be told of operations.
/// Else nothing needs it; with a thousand ranks on a host, waking up each 5 ms took most of two
/// cores.
constexpr std::chrono::milliseconds kBesideWaiters{5}, kOnlyBesideWaiters{500};

/// Logs an exception of the function: nobody waits for a result to which it could belong.
void call_notified(void (*function)(void*), void* argument) {
  const Status threw = call_program("a function given to anycclWorkNotify", function, argument);
  if (!threw.ok()) log(LogLevel::warn, "{}", threw.message());
}

}  // namespace

Status BackgroundProgress::add(const CommPtr& comm) {
  const std::lock_guard lock(mutex_);
  comm->loop().expect();
  if (std::find(open_.begin(), open_.end(), comm) != open_.end()) return {};
  ANYCCL_CHECK(start_locked());
  open_.push_back(comm);
  look_again();
  return {};
}

Status BackgroundProgress::listen(const CommPtr& comm) {
  const std::lock_guard lock(mutex_);
  if (std::find(listening_.begin(), listening_.end(), comm) != listening_.end()) return {};
  ANYCCL_CHECK(start_locked());
  listening_.push_back(comm);
  look_again();
  return {};
}

void BackgroundProgress::give_back_later(const std::weak_ptr<Comm>& comm) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || !start_locked().ok()) return;
  add_tenant(comm, unused_);
}

void BackgroundProgress::repeat(std::chrono::milliseconds pause, std::function<void()> chore) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || !start_locked().ok()) return;
  chores_.push_back({pause, std::move(chore), std::chrono::steady_clock::now() + pause});
  changed_.notify_one();
}

/// Lets `comm` give back memory after `pause`, unless it is to do so already. With the lock.
void BackgroundProgress::add_tenant(const std::weak_ptr<Comm>& comm,
                                    std::chrono::milliseconds pause) {
  if (std::any_of(tenants_.begin(), tenants_.end(), [&](const Tenant& t) { return t.is(comm); }))
    return;
  std::erase_if(tenants_, [](const Tenant& t) { return t.comm.expired(); });
  tenants_.push_back({comm, pause, std::chrono::steady_clock::now() + pause});
  changed_.notify_one();
}

Status BackgroundProgress::notify(const CommPtr& comm, std::shared_ptr<Operation> operation,
                                  void (*function)(void*), void* argument) {
  {
    const std::lock_guard lock(mutex_);
    Note note{comm, std::move(operation), function, argument};
    if (!note.due()) {
      ANYCCL_CHECK(start_locked());
      notes_.push_back(std::move(note));
      look_again();
      return {};
    }
  }
  call_notified(function, argument);
  return {};
}

void BackgroundProgress::forget(const Comm& comm) {
  std::unique_lock lock(mutex_);
  for (std::vector<CommPtr>* list : {&open_, &listening_})
    std::erase_if(*list, [&](const CommPtr& one) { return one.get() == &comm; });
  forget_tenant(comm);
  look_again();
  if (std::this_thread::get_id() == worker_) return;
  // Where something is always open, one turn follows another.
  const std::uint64_t turn = turn_;
  turned_.wait(lock, [&] { return !in_turn_ || turn_ != turn; });
  forget_tenant(comm);  // to which the turn may have added it
}

void BackgroundProgress::forget_memory(const Comm& comm) {
  std::unique_lock lock(mutex_);
  forget_tenant(comm);
  if (std::this_thread::get_id() == worker_) return;
  turned_.wait(lock, [&] { return giving_back_ != &comm; });
  forget_tenant(comm);  // to which it may have been added
}

/// With the lock.
void BackgroundProgress::forget_tenant(const Comm& comm) {
  const std::weak_ptr<const Comm> gone = comm.weak_from_this();
  std::erase_if(tenants_, [&](const Tenant& t) {
    return !t.comm.owner_before(gone) && !gone.owner_before(t.comm);
  });
}

void BackgroundProgress::stop(Deadline deadline) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  look_again();
  if (std::this_thread::get_id() == worker_) return;  // a notified function ends the program
  turned_.wait_for(lock, std::chrono::milliseconds(deadline.poll_ms()),
                   [&] { return !running_ || !in_turn_; });
}

Status BackgroundProgress::start_locked() {
  if (running_) return {};
  const SignalsBlocked blocked;
  try {
    std::thread worker([this] { work(); });
    worker_ = worker.get_id();
    worker.detach();
    running_ = true;
    return {};
  } catch (const std::system_error& problem) {
    return system_error(problem.code().value(), "starting the background thread");
  }
}

/// With the lock.
void BackgroundProgress::look_again() {
  called_.store(true, std::memory_order_seq_cst);
  changed_.notify_one();
  if (only_ != nullptr) only_->loop().wake_background();
}

/// Returns when there is something to look at. Windows are that always, but not often.
void BackgroundProgress::await_turn(std::unique_lock<std::mutex>& lock, int& idle_polls) {
  if (listening_.empty()) return sleep_until_needed(lock);
  if (is_watched() || idle_polls < kIdlePolls) return;
  changed_.wait_for(lock, Backoff::kSleep, [&] { return stopping_ || is_watched(); });
  idle_polls = kIdlePolls;
}

/// Also ends when there may be something to give back, or a chore to do.
void BackgroundProgress::sleep_until_needed(std::unique_lock<std::mutex>& lock) {
  constexpr auto kNever = std::chrono::steady_clock::time_point::max();
  while (!stopping_ && !is_watched() && listening_.empty()) {
    auto due = kNever;
    for (const Chore& chore : chores_) due = std::min(due, chore.due);
    for (const Tenant& tenant : tenants_) due = std::min(due, tenant.due);
    if (due == kNever)
      changed_.wait(lock);
    else if (due > std::chrono::steady_clock::now())
      changed_.wait_until(lock, due);
    else
      return;
  }
}

/// Makes progress in each of them once; sleeps if nothing has moved for long and `watched` is true.
/// Without the lock.
void BackgroundProgress::look(const std::vector<CommPtr>& comms, bool watched, int& idle_polls) {
  bool moved = false;
  for (const CommPtr& comm : comms) moved = comm->progress_in_background() || moved;
  ++idle_polls;
  if (moved)
    idle_polls = 0;
  else if (idle_polls < kIdlePolls)
    relax();
  else if (!watched)
    return;  // await_turn() sleeps
  else
    sleep(comms, idle_polls);
}

void BackgroundProgress::sleep(const std::vector<CommPtr>& comms, int idle_polls) {
  if (comms.empty())
    return std::this_thread::sleep_for(Backoff::kSleep);  // for notes, which ring nothing
  const bool only = comms.size() == 1;
  // A waiting thread rings when it leaves, but not for each operation that it completes.
  if (only && comms.front()->loop().sleep_beside_waiters(
                  notes_wait_ ? kBesideWaiters : kOnlyBesideWaiters, called_))
    return;
  comms[static_cast<std::size_t>(idle_polls) % comms.size()]->loop().sleep_in_background(
      only && idle_polls > kTired ? Backoff::kLongSleep : Backoff::kSleep);
}

/// Drops communicators with nothing open and those without windows. One that listens becomes open
/// if something came into its windows: more may follow.
void BackgroundProgress::sort_out() {
  std::erase_if(open_, [](const CommPtr& comm) { return comm->loop().is_quiet(); });
  std::erase_if(listening_, [](const CommPtr& comm) { return !comm->is_listening(); });
  for (const CommPtr& comm : listening_)
    if (!comm->loop().is_quiet() && std::find(open_.begin(), open_.end(), comm) == open_.end())
      open_.push_back(comm);
}

/// With the lock. None, if there is no memory for the list: there may be in the next turn.
auto BackgroundProgress::to_look_at() const -> std::vector<CommPtr> try {
  std::vector<CommPtr> comms = open_;
  for (const CommPtr& comm : listening_)
    if (std::find(open_.begin(), open_.end(), comm) == open_.end()) comms.push_back(comm);
  return comms;
} catch (const std::bad_alloc&) {
  return {};
}

void BackgroundProgress::work() {
  ::pthread_setname_np(::pthread_self(), "anyccl-progress");
  std::unique_lock lock(mutex_);
  for (int idle_polls = 0;;) {
    await_turn(lock, idle_polls);
    if (stopping_) return;
    in_turn_ = true;
    ++turn_;
    called_.store(false, std::memory_order_relaxed);  // with the lock, as where it is set
    notes_wait_ = !notes_.empty();
    std::vector<CommPtr> comms = to_look_at();
    if (comms.size() == 1) only_ = comms.front();
    const bool watched = is_watched();
    lock.unlock();
    look(comms, watched, idle_polls);
    comms.clear();
    lock.lock();
    only_ = nullptr;
    sort_out();
    give_back(lock);
    do_chores(lock);
    if (tell(lock)) idle_polls = 0;
    in_turn_ = false;
    turned_.notify_all();
  }
}

/// Asks communicators whose time has come, without the lock.
void BackgroundProgress::give_back(std::unique_lock<std::mutex>& lock) {
  if (tenants_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  for (;;) {
    const auto due = std::find_if(tenants_.begin(), tenants_.end(),
                                  [&](const Tenant& t) { return t.due <= now; });
    if (due == tenants_.end() || stopping_) return;
    const Tenant tenant = std::move(*due);
    tenants_.erase(due);  // first: what grows meanwhile is added again
    GivenBack given = GivenBack::all;
    if (CommPtr comm = tenant.comm.lock()) {
      giving_back_ = comm.get();
      lock.unlock();
      given = CommMemory(*comm).give_back();
      comm = nullptr;  // without the lock, as it may be the last
      lock.lock();
      giving_back_ = nullptr;
      turned_.notify_all();
    }
    if (given == GivenBack::in_use) add_tenant(tenant.comm, unused_);
    if (given == GivenBack::unread)
      add_tenant(tenant.comm, std::min(2 * tenant.pause, std::max(kRareLook, unused_)));
  }
}

/// Runs the chores that are due, each without the lock.
void BackgroundProgress::do_chores(std::unique_lock<std::mutex>& lock) {
  for (std::size_t i = 0; i < chores_.size() && !stopping_; ++i) {
    Chore& chore = chores_[i];
    if (chore.due > std::chrono::steady_clock::now()) continue;
    lock.unlock();
    try {
      chore.run();
    } catch (const std::bad_alloc&) {  // it is due again
      log_text(LogLevel::warn, "there is no memory for what the background thread repeats");
    }
    lock.lock();
    chore.due = std::chrono::steady_clock::now() + chore.pause;
  }
}

/// Calls the functions that are due, without the lock. Returns whether there were any.
bool BackgroundProgress::tell(std::unique_lock<std::mutex>& lock) {
  bool told = false;
  for (;;) {
    const auto due =
        std::find_if(notes_.begin(), notes_.end(), [](const Note& note) { return note.due(); });
    if (due == notes_.end() || stopping_) return told;
    const Note note = std::move(*due);
    notes_.erase(due);
    lock.unlock();
    call_notified(note.function, note.argument);
    lock.lock();
    told = true;
  }
}

}  // namespace anyccl
