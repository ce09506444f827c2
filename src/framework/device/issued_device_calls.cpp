#include "framework/device/issued_device_calls.hpp"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <system_error>

#include "base/error.hpp"
#include "base/per_process.hpp"
#include "base/signals.hpp"

namespace anyccl {

namespace {

thread_local constinit bool is_worker = false;

}  // namespace

IssuedDeviceCalls& IssuedDeviceCalls::of_process() {
  return per_process<IssuedDeviceCalls>();
}

bool IssuedDeviceCalls::is_this_thread() {
  return is_worker;
}

Status IssuedDeviceCalls::start() {
  const std::lock_guard lock(mutex_);
  if (running_) return {};
  const SignalsBlocked blocked;
  try {
    std::thread([this] { work(); }).detach();
    running_ = true;
    return {};
  } catch (const std::system_error& problem) {
    return system_error(problem.code().value(), "starting the thread of calls on devices");
  }
}

void IssuedDeviceCalls::add(One one) noexcept {
  {
    const std::lock_guard lock(mutex_);
    open_.splice(open_.end(), one);
  }
  added_.notify_one();
}

void IssuedDeviceCalls::await_end(const Comm& comm, Deadline deadline) {
  await_none([&](const DeviceWork& work) { return &work.comm() == &comm; }, deadline);
}

void IssuedDeviceCalls::await_queued(const Comm& comm, Deadline deadline) {
  await_none([&](const DeviceWork& work) { return &work.comm() == &comm && work.is_queued(); },
             deadline);
}

template <typename Which>
void IssuedDeviceCalls::await_none(const Which& which, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto is_gone = [&] {
    return std::none_of(open_.begin(), open_.end(),
                        [&](const auto& operation) { return which(*operation); });
  };
  const auto wait_until = [&](const auto& condition) {
    while (!stopping_ && !condition() && !deadline.passed())
      turned_.wait_for(lock, std::chrono::milliseconds(deadline.poll_ms()),
                       [&] { return stopping_ || condition(); });
  };
  wait_until(is_gone);
  // The turn that has completed the last one may have it yet, and with it the communicator.
  const std::uint64_t turn = turn_;
  wait_until([&] { return !in_turn_ || turn_ != turn; });
}

void IssuedDeviceCalls::stop(Deadline deadline) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  added_.notify_all();
  turned_.notify_all();
  turned_.wait_for(lock, std::chrono::milliseconds(deadline.poll_ms()), [&] { return !in_turn_; });
}

/// Goes on with each; `moved` becomes true if one has. Returns those that are over. With the lock,
/// which it gives back meanwhile.
IssuedDeviceCalls::One IssuedDeviceCalls::take_turn(std::unique_lock<std::mutex>& lock,
                                                    bool& moved) {
  One over;
  // Others only add behind the last one, and only this thread removes.
  for (auto one = open_.begin(); one != open_.end();) {
    lock.unlock();
    try {
      moved = (*one)->advance() || moved;
    } catch (const std::bad_alloc&) {
      // There may be memory in the next turn.
    }
    lock.lock();
    const auto next = std::next(one);
    if ((*one)->done()) over.splice(over.end(), open_, one);
    one = next;
  }
  return over;
}

void IssuedDeviceCalls::work() {
  using namespace std::chrono_literals;
  is_worker = true;
  ::pthread_setname_np(::pthread_self(), "anyccl-device");
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [&] { return stopping_ || !open_.empty(); });
    if (stopping_) return;
    in_turn_ = true;
    ++turn_;
    bool moved = false;
    One over = take_turn(lock, moved);
    lock.unlock();
    over.clear();  // without the lock, and in the turn: it may free a communicator
    lock.lock();
    in_turn_ = false;
    turned_.notify_all();
    if (moved) continue;
    lock.unlock();
    std::this_thread::sleep_for(
        50us);  // nothing wakes this thread when a device has done something
    lock.lock();
  }
}

}  // namespace anyccl
