#include "channel.hpp"

#include <algorithm>
#include <string>
#include <thread>

#include "errors.hpp"

namespace anyccl::torch {
namespace {

using Clock = std::chrono::steady_clock;

/// Polls what is under way on `comm` until it is done or `deadline` has passed: then InProgress.
anycclResult_t poll(anycclComm_t comm, Clock::time_point deadline) {
  std::chrono::microseconds pause{20};
  for (;;) {
    anycclResult_t state = anycclSuccess;
    const anycclResult_t asked = anycclCommGetAsyncError(comm, &state);
    if (asked != anycclSuccess) return asked;
    if (state != anycclInProgress || Clock::now() >= deadline) return state;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds{2000});
  }
}

}  // namespace

Channel::Channel(const anycclUniqueId& id, int rank, int size) {
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  anycclComm_t comm = nullptr;
  const anycclResult_t code = anycclCommInitRankConfig(&comm, size, id, rank, &config);
  if (code != anycclInProgress) check(code, "init_process_group");
  comm_.store(comm, std::memory_order_relaxed);
}

Channel::~Channel() {
  abort();
}

void Channel::ready(Clock::time_point deadline) {
  const anycclComm_t comm = comm_.load(std::memory_order_relaxed);
  const anycclResult_t code = poll(comm, deadline);
  if (code == anycclSuccess) return;
  const std::string text = anycclGetLastError(comm);
  throw_backend_error("anyccl: init_process_group: " +
                      (code == anycclInProgress ? "timeout while the ranks connect" : text));
}

anycclResult_t Channel::error() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return anycclSuccess;  // a call is under way, and will tell
  const anycclComm_t comm = comm_.load(std::memory_order_relaxed);
  anycclResult_t state = anycclAborted;
  if (comm != nullptr) anycclCommGetAsyncError(comm, &state);
  return state;
}

bool Channel::close(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  const std::unique_lock lock(mutex_, deadline);
  const anycclComm_t comm = comm_.load(std::memory_order_relaxed);
  if (comm == nullptr) return true;
  anycclResult_t code = anycclInProgress;
  if (lock.owns_lock()) {
    code = anycclCommFinalize(comm);
    if (code == anycclInProgress) code = poll(comm, deadline);
  }
  if (comm_.exchange(nullptr, std::memory_order_relaxed) == nullptr) return false;  // aborted
  if (code == anycclInProgress) {
    anycclCommAbort(comm);
    return false;
  }
  anycclCommDestroy(comm);
  return true;
}

void Channel::abort() {
  // Who holds the mutex for longer than this is inside the library, and is told by the abort.
  const std::unique_lock lock(mutex_, std::chrono::milliseconds{50});
  anycclCommAbort(comm_.exchange(nullptr, std::memory_order_relaxed));
}

void Channel::throw_closed(std::string_view name) const {
  throw_backend_error("anyccl: " + std::string(name) +
                      ": this process group was shut down or aborted");
}

}  // namespace anyccl::torch
