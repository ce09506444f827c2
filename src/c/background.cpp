#include "c/background.hpp"

#include <chrono>
#include <thread>

#include "base/error.hpp"
#include "base/fork.hpp"
#include "base/signals.hpp"
#include "framework/waiting/interrupt.hpp"

namespace anyccl {

Background::Background() : result_(CommPtr()) {
  watch_forks();
  fork_generation_ = fork_generation();
}

std::shared_ptr<Background> Background::start(std::function<Result<CommPtr>()> job,
                                              std::function<void()> when_abandoned) {
  const std::shared_ptr<Background> made(new Background);
  made->when_abandoned_ = std::move(when_abandoned);
  const SignalsBlocked blocked;
  std::thread([made, job = std::move(job)] { made->run(job); }).detach();
  return made;
}

void Background::run(const std::function<Result<CommPtr>()>& job) {
  Result<CommPtr> result = CommPtr();
  try {
    result = job();
  } catch (const std::exception& e) {
    result = Status(Code::system_error, e.what());
  }
  const std::lock_guard lock(mutex_);
  if (abandoned_ && result.ok() && *result != nullptr) abort(**result);
  result_ = abandoned_ ? CommPtr() : std::move(result);
  done_ = true;
  ended_.notify_all();
}

bool Background::done() {
  if (fork_generation() != fork_generation_) return true;
  const std::lock_guard lock(mutex_);
  return done_;
}

Result<CommPtr> Background::wait_for_result(bool may_end) {
  if (fork_generation() != fork_generation_) return CommPtr();  // its thread is the parent's
  std::unique_lock lock(mutex_);
  Interrupt interrupt;
  while (!done_) {
    ended_.wait_for(lock, std::chrono::milliseconds(50));
    if (!may_end || !interrupt.is_due()) continue;
    lock.unlock();
    if (Interrupt::is_wanted()) {
      abandon();
      return error(Code::aborted, "the program ended the wait for the communicator's creation");
    }
    lock.lock();
  }
  return std::exchange(result_, CommPtr());
}

void Background::abandon() {
  if (fork_generation() != fork_generation_) return;
  std::unique_lock lock(mutex_);
  abandoned_ = true;
  if (done_ && result_.ok() && *result_ != nullptr) abort(**result_);
  result_ = CommPtr();
  const bool is_under_way = !done_;
  lock.unlock();
  if (is_under_way && when_abandoned_) when_abandoned_();
}

void abort(Comm& comm) {
  comm.abort(aborted_by(comm.membership()));
}
void abort(Team& team) {
  team.abort(aborted_by(team.first().membership()));
}

}  // namespace anyccl
