#include "shared_comm.hpp"

#include <cstdlib>
#include <string>
#include <thread>

#include "anyccl/device.h"
#include "errors.hpp"
#include "waiting.hpp"

namespace anyccl::torch {
namespace {

/// Asks `done` until it is true, at first often, and so that it hears of that a sixteenth too late,
/// or as late as a sleep of the system ends; false if it is not at `deadline`.
template <typename Done>
bool poll_until(Clock::time_point deadline, const Done& done) {
  std::chrono::microseconds pause{20};
  while (!done()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause + pause / 16, std::chrono::microseconds{2000});
  }
  return true;
}

/// The result of the operation in progress on `comm`; InProgress at `deadline`.
anycclResult_t wait_for_outcome(anycclComm_t comm, Clock::time_point deadline) {
  anycclResult_t state = anycclInProgress;
  poll_until(deadline, [&] {
    if (const anycclResult_t asked = anycclCommGetAsyncError(comm, &state); asked != anycclSuccess)
      state = asked;
    return state != anycclInProgress;
  });
  return state;
}

/// Sets no time limit for operations, whatever ANYCCL_OP_TIMEOUT says; leaves out `accumulate`.
anycclConfig_t in_background(const Numbers& numbers) {
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.timeoutMs = 0;  // torch has limits of its own, and messages may be posted long before
  config.reproducible = numbers.reproducible;
  config.verify = numbers.verify;
  config.verifyLater = numbers.verify_later;
  config.deviceQueues = 0;  // the first tensor tells the device: see use_queues()
  return config;
}

/// What the variable says now; the library refuses a value that is not 0 or 1.
bool wants_queues() {
  const char* const text = std::getenv("ANYCCL_DEVICE_QUEUES");
  return text != nullptr && std::atoi(text) == 1;
}

}  // namespace

Numbers Numbers::or_else(const Numbers& others) const {
  const auto one = [](int mine, int other) {
    return mine == ANYCCL_CONFIG_UNDEF_INT ? other : mine;
  };
  return {one(reproducible, others.reproducible), one(verify, others.verify),
          one(verify_later, others.verify_later), one(accumulate, others.accumulate)};
}

SharedComm::SharedComm(const anycclUniqueId& id, int rank, int size, const Numbers& numbers)
    : wants_queues_(wants_queues()) {
  anycclConfig_t config = in_background(numbers);
  anycclComm_t comm = nullptr;
  const anycclResult_t code = anycclCommInitRankConfig(&comm, size, id, rank, &config);
  if (code != anycclInProgress) check(code, "init_process_group");
  comm_ = comm;
}

SharedComm::SharedComm(anycclComm_t begun) : comm_(begun), wants_queues_(wants_queues()) {}

SharedComm::~SharedComm() {
  abort();
}

void SharedComm::wait_until_ready(Clock::time_point deadline, std::string_view name,
                                  const std::function<void()>& meanwhile) {
  const anycclComm_t comm = comm_.load();
  for (;;) {
    const auto turn = std::min(deadline, Clock::now() + kSignalTime);
    const anycclResult_t code = wait_for_outcome(comm, turn);
    if (code == anycclSuccess) {
      // While tensors are the CPU's, nobody need ask, also in a program that uses CUDA.
      check(anycclCommSetDevice(comm, ANYCCL_NO_DEVICE), name);
      return;
    }
    if (code != anycclInProgress)
      std::rethrow_exception(failure(code, name, anycclGetLastError(comm)));
    if (turn == deadline)
      std::rethrow_exception(failure(anycclTimeout, name, "the ranks have not connected in time"));
    check_signals();
    if (meanwhile) meanwhile();
  }
}

std::shared_ptr<SharedComm> SharedComm::shrink(std::vector<int> excluded, bool after_failure,
                                               const Numbers& numbers) {
  std::shared_ptr<SharedComm> made;
  with("shrink_group", [&](anycclComm_t comm) {
    anycclConfig_t config = in_background(numbers);
    anycclComm_t begun = nullptr;
    const anycclResult_t code =
        anycclCommShrink(comm, excluded.data(), static_cast<int>(excluded.size()), &begun, &config,
                         after_failure ? ANYCCL_SHRINK_ABORT : ANYCCL_SHRINK_DEFAULT);
    if (code != anycclInProgress) check(code, "shrink_group");
    made = std::make_shared<SharedComm>(begun);
  });
  made->wait_until_ready(Clock::time_point::max(), "shrink_group");
  return made;
}

std::vector<int> SharedComm::survivors(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  with("shrink_group", [&](anycclComm_t comm) {
    int count = 0;
    check(anycclCommSurvivors(comm, ranks.data(), &count), "shrink_group");
    ranks.resize(static_cast<std::size_t>(count));
  });
  return ranks;
}

class SharedComm::OnlyUser {
 public:
  OnlyUser(SharedComm& shared_comm, std::string_view name, Clock::time_point deadline)
      : users_(shared_comm.users_) {
    const auto takes_it = [&] {
      int none = 0;
      return users_.compare_exchange_strong(none, kOnlyUser);
    };
    while (!poll_until(std::min(deadline, Clock::now() + kSignalTime), takes_it)) {
      check_signals();
      if (Clock::now() >= deadline)
        std::rethrow_exception(
            failure(anycclTimeout, name,
                    "the first call with a tensor of a device waits for calls of other threads"));
    }
  }
  ~OnlyUser() {
    users_.fetch_sub(kOnlyUser);
    users_.notify_all();
  }
  OnlyUser(const OnlyUser&) = delete;
  OnlyUser& operator=(const OnlyUser&) = delete;

 private:
  std::atomic<int>& users_;
};

c10::Device SharedComm::use_device(c10::Device device, std::string_view name,
                                   Clock::time_point deadline) {
  if (const c10::Device used = device_.load(); !used.is_cpu()) return used;
  const OnlyUser only(*this, name, deadline);
  if (!open_.load()) throw_closed(name);
  if (const c10::Device used = device_.load(); !used.is_cpu()) return used;
  check(anycclCommSetDevice(comm_.load(), device.index()), name);
  device_ = device;
  return device;
}

void SharedComm::use_queues(std::string_view name, const std::function<void()>& meet) {
  if (queues_.load() != Queues::unasked) return;
  Queues found = Queues::none;
  if (wants_queues_) {
    meet();
    with(name, [&](anycclComm_t comm) {
      const anycclResult_t result = anycclCommUseDeviceQueues(comm);
      const std::string why = anycclGetLastError(comm);
      anycclResult_t failure = anycclSuccess;
      anycclCommGetAsyncError(comm, &failure);
      if (failure != anycclSuccess) check(result, name);
      if (result == anycclSuccess)
        found = Queues::used;
      else
        TORCH_WARN("anyccl: calls on ", device_.load(), " go by copies to the host: ", why);
    });
  }
  queues_.store(found);
}

anycclResult_t SharedComm::error() {
  const User user(*this);
  if (!open_.load()) return ended_with_.load();
  anycclResult_t state = anycclSuccess;
  anycclCommGetAsyncError(comm_.load(), &state);
  return state;
}

void SharedComm::check_alive(std::string_view name, int peer) {
  with(name, [&](anycclComm_t comm) {
    anycclMessage_t found{};
    int is_there = 0;  // a probe looks for failures, as nothing else may be under way
    const anycclResult_t code = anycclIprobe(peer, ANYCCL_LAYER_TAG(0), comm, &is_there, &found);
    if (code != anycclSuccess)
      std::rethrow_exception(failure(code, name, anycclGetLastError(comm)));
  });
}

bool SharedComm::wait_unused(Clock::time_point deadline) {
  return poll_until(deadline, [&] { return users_.load() == 0; });
}

void SharedComm::close(Clock::time_point deadline, const std::function<void()>& meanwhile) {
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
    code = anycclCommFinalizeFor(comm, limit_of(time_left(deadline, kLeast)));
    // It ends by itself, but for what keeps its threads from running.
    constexpr std::chrono::seconds kGrace{1};
    while (code == anycclInProgress && Clock::now() < deadline + kGrace) {
      code = wait_for_outcome(comm, std::min(deadline + kGrace, Clock::now() + kSignalTime));
      if (code == anycclInProgress && meanwhile) meanwhile();
    }
  }
  if (code == anycclInProgress)
    abort();
  else if (comm_.exchange(nullptr) != nullptr)  // else it was aborted
    anycclCommDestroy(comm);
}

void SharedComm::abort() {
  open_ = false;
  // Ends the calls of other threads, so that the handle is free of them. Where a shutdown is under
  // way the library refuses that, and a thread that takes longer is told by the abort.
  if (const anycclComm_t comm = comm_.load(); comm != nullptr && users_.load() > 0)
    anycclCommRevoke(comm, ANYCCL_REVOKE_DEFAULT);
  wait_unused(Clock::now() + std::chrono::milliseconds{50});
  const anycclComm_t comm = comm_.exchange(nullptr);
  if (comm == nullptr) return;
  ended_with_ = anycclAborted;
  anycclCommAbort(comm);
}

void SharedComm::throw_closed(std::string_view name) const {
  throw_backend_error("anyccl: " + std::string(name) +
                      (ended_with_.load() == anycclInvalidUsage
                           ? ": this process group was made with enable_reconfigure, and has to be "
                             "reconfigured first"
                           : ": this process group was shut down or aborted"));
}

}  // namespace anyccl::torch
