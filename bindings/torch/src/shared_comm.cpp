#include "shared_comm.hpp"

#include <string>
#include <thread>

#include "errors.hpp"

namespace anyccl::torch {
namespace {

/// Asks `done` until it is true, at first often, and so that it hears of that a sixteenth too late, or
/// as late as a sleep of the system ends; false if it is not at `deadline`.
template <typename Done>
bool poll(Clock::time_point deadline, const Done& done) {
  std::chrono::microseconds pause{20};
  while (!done()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause + pause / 16, std::chrono::microseconds{2000});
  }
  return true;
}

/// The result of the operation in progress on `comm`; InProgress at `deadline`.
anycclResult_t outcome(anycclComm_t comm, Clock::time_point deadline) {
  anycclResult_t state = anycclInProgress;
  poll(deadline, [&] {
    if (const anycclResult_t asked = anycclCommGetAsyncError(comm, &state); asked != anycclSuccess)
      state = asked;
    return state != anycclInProgress;
  });
  return state;
}

anycclConfig_t in_background() {
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.timeoutMs = 0;  // torch has limits of its own, and messages may be posted long before
  return config;
}

}  // namespace

SharedComm::SharedComm(const anycclUniqueId& id, int rank, int size) {
  anycclConfig_t config = in_background();
  anycclComm_t comm = nullptr;
  const anycclResult_t code = anycclCommInitRankConfig(&comm, size, id, rank, &config);
  if (code != anycclInProgress) check(code, "init_process_group");
  comm_ = comm;
}

SharedComm::~SharedComm() {
  abort();
}

void SharedComm::ready(Clock::time_point deadline) {
  const anycclComm_t comm = comm_.load();
  const anycclResult_t code = outcome(comm, deadline);
  if (code == anycclSuccess) return;
  const std::string text = anycclGetLastError(comm);
  throw_backend_error("anyccl: init_process_group: " +
                      (code == anycclInProgress ? "timeout while the ranks connect" : text));
}

anycclResult_t SharedComm::error() {
  const User user(*this);
  if (!open_.load()) return ended_with_.load();
  anycclResult_t state = anycclSuccess;
  anycclCommGetAsyncError(comm_.load(), &state);
  return state;
}

bool SharedComm::wait_unused(Clock::time_point deadline) {
  return poll(deadline, [&] { return users_.load() == 0; });
}

void SharedComm::close(Clock::time_point deadline) {
  open_ = false;
  const std::unique_lock lock(closing_, deadline);
  const anycclComm_t comm = comm_.load();
  if (!lock.owns_lock() || comm == nullptr) return;
  anycclResult_t code = anycclInProgress;
  if (wait_unused(deadline)) {
    constexpr std::chrono::milliseconds kLeast{1};
    anycclResult_t failure = anycclSuccess;
    anycclCommGetAsyncError(comm, &failure);
    ended_with_ = failure;
    code = anycclCommFinalizeFor(comm, limit_of(left(deadline, kLeast)));
    // It ends by itself, but for what keeps its threads from running.
    constexpr std::chrono::seconds kGrace{1};
    if (code == anycclInProgress) code = outcome(comm, deadline + kGrace);
  }
  if (code == anycclInProgress)
    abort();
  else if (comm_.exchange(nullptr) != nullptr)  // else it was aborted
    anycclCommDestroy(comm);
}

void SharedComm::abort() {
  open_ = false;
  // A thread that takes longer is waiting inside the library, and is told by the abort.
  wait_unused(Clock::now() + std::chrono::milliseconds{50});
  const anycclComm_t comm = comm_.exchange(nullptr);
  if (comm == nullptr) return;
  ended_with_ = anycclAborted;
  anycclCommAbort(comm);
}

void SharedComm::throw_closed(std::string_view name) const {
  throw_backend_error("anyccl: " + std::string(name) +
                      ": this process group was shut down or aborted");
}

}  // namespace anyccl::torch
