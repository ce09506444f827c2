#include "framework/device/issued_device_calls.hpp"

#include <pthread.h>

#include <algorithm>
#include <system_error>

#include "base/error.hpp"
#include "base/per_process.hpp"
#include "base/signals.hpp"

namespace anyccl {

IssuedDeviceCalls& IssuedDeviceCalls::of_process() {
  return per_process<IssuedDeviceCalls>();
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

void IssuedDeviceCalls::await_end(const Comm& comm) {
  std::unique_lock lock(mutex_);
  turned_.wait(lock, [&] {
    return stopping_ || std::none_of(open_.begin(), open_.end(), [&](const auto& operation) {
             return &operation->comm() == &comm;
           });
  });
}

void IssuedDeviceCalls::stop(Deadline deadline) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  turned_.wait_for(lock, std::chrono::milliseconds(deadline.poll_ms()), [&] { return !in_turn_; });
}

void IssuedDeviceCalls::work() {
  using namespace std::chrono_literals;
  ::pthread_setname_np(::pthread_self(), "anyccl-device");
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [&] { return stopping_ || !open_.empty(); });
    if (stopping_) return;
    in_turn_ = true;
    // Others only add behind the last one, and only this thread removes.
    const auto end = open_.end();
    bool moved = false;
    One over;
    for (auto one = open_.begin(); one != end;) {
      const auto next = std::next(one);
      lock.unlock();
      moved = (*one)->advance() || moved;
      lock.lock();
      if ((*one)->done()) over.splice(over.end(), open_, one);
      one = next;
    }
    in_turn_ = false;
    turned_.notify_all();
    lock.unlock();
    over.clear();  // which may free a communicator
    if (!moved) std::this_thread::sleep_for(50us);
    lock.lock();
  }
}

}  // namespace anyccl
