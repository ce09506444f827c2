// How communicators come, and how they end in the background.

#include <algorithm>
#include <chrono>
#include <thread>

#include "communicator.hpp"
#include "group.hpp"
#include "objects.hpp"

namespace anyccl::python {
namespace {

/// In milliseconds, as createTimeoutMs of a configuration.
int creation_limit(double seconds) {
  constexpr double kLeast = 0.001, kMost = 86400;
  if (!(seconds >= kLeast && seconds <= kMost))
    raise_invalid("timeout is " + std::to_string(seconds) +
                  " s: creating a communicator may take 0.001 to 86400 s, or None: the default");
  return static_cast<int>(seconds * 1000);
}

/// The library's form of `how`, which it must not outlive. The library creates in the background,
/// so that signals can end a wait.
anycclConfig_t config_of(const Creation& how) {
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (how.name) config.commName = how.name->c_str();
  if (how.timeout) config.createTimeoutMs = creation_limit(*how.timeout);
  if (how.reproducible) config.reproducible = *how.reproducible;
  if (how.verify) config.verify = *how.verify;
  if (how.verify_later) config.verifyLater = *how.verify_later ? 1 : 0;
  return config;
}

/// Success, InProgress, or why it cannot be used.
Outcome state_of(anycclComm_t handle) {
  return unlocked([&] {
    anycclResult_t state = anycclSuccess;
    const anycclResult_t asked = anycclCommGetAsyncError(handle, &state);
    return asked == anycclSuccess ? state : asked;
  });
}

}  // namespace

/// `make` calls the library, which writes the handle. Waits for the end where `how` says so, and
/// returns null then for a split that this rank has no part in. `parent`: it is derived from that,
/// or null.
template <typename Make>
CommunicatorPtr Communicator::create_by(const Creation& how, Communicator* parent,
                                        const Make& make) {
  anycclComm_t handle = nullptr;
  const Outcome outcome = unlocked([&] { return make(&handle); });
  if (outcome.code != anycclInProgress) raise_unless_ok(outcome);
  auto comm = std::make_shared<Communicator>(handle);
  comm->creating_ = true;  // so that it is aborted where the wait is interrupted
  comm->waits_ = how.wait;
  if (parent != nullptr && !how.wait) parent->splitting_ = comm;
  if (!how.wait) return comm;
  comm->wait_until_ready(std::nullopt);
  return comm->rank_ < 0 ? nullptr : comm;
}

CommunicatorPtr Communicator::from_env(const Creation& how) {
  need_no_group("from_env");
  anycclConfig_t config = config_of(how);
  return create_by(how, nullptr,
                   [&](anycclComm_t* handle) { return anycclCommInitEnvConfig(handle, &config); });
}

CommunicatorPtr Communicator::from_unique_id(const anycclUniqueId& id, int rank, int size,
                                             const Creation& how) {
  need_no_group("from_unique_id");
  anycclConfig_t config = config_of(how);
  CommunicatorPtr comm = create_by(how, nullptr, [&](anycclComm_t* handle) {
    return anycclCommInitRankConfig(handle, size, id, rank, &config);
  });
  comm->rank_ = rank, comm->size_ = size;
  return comm;
}

std::vector<CommunicatorPtr> Communicator::init_all(int size) {
  need_no_group("init_all");
  std::vector<anycclComm_t> handles(static_cast<std::size_t>(std::clamp(size, 0, kLargestGroup)));
  raise_unless_ok(unlocked([&] { return anycclCommInitAll(handles.data(), size, nullptr); }));
  std::vector<CommunicatorPtr> comms;
  for (const anycclComm_t handle : handles) comms.push_back(std::make_shared<Communicator>(handle));
  return comms;
}

CommunicatorPtr Communicator::split(int color, int key, const Creation& how) {
  need_no_group("split");
  const Call turn(*this);
  anycclConfig_t config = config_of(how);
  return create_by(how, this, [&](anycclComm_t* handle) {
    return anycclCommSplit(turn.handle, color, key, handle, &config);
  });
}

CommunicatorPtr Communicator::shrink(std::vector<int> excluded, bool after_failure,
                                     const Creation& how) {
  need_no_group("shrink");
  const Call turn(*this);
  anycclConfig_t config = config_of(how);
  return create_by(how, this, [&](anycclComm_t* handle) {
    return anycclCommShrink(turn.handle, excluded.data(), static_cast<int>(excluded.size()), handle,
                            &config, after_failure ? ANYCCL_SHRINK_ABORT : ANYCCL_SHRINK_DEFAULT);
  });
}

CommunicatorPtr Communicator::grow(int size, const anycclUniqueId* id, const Creation& how) {
  need_no_group("grow");
  const Call turn(*this);
  anycclConfig_t config = config_of(how);
  return create_by(how, this, [&](anycclComm_t* handle) {
    return anycclCommGrow(turn.handle, size, id, -1, handle, &config);
  });
}

/// Whether the creation has come to its end; raises its failure.
bool Communicator::is_created() {
  const Outcome state = state_of(handle_);
  if (state.code == anycclInProgress) return false;
  raise_unless_ok(state);
  creating_ = false;
  static_cast<void>(anycclCommUserRank(handle_, &rank_));
  static_cast<void>(anycclCommCount(handle_, &size_));
  if (rank_ < 0) finalized_ = true;  // a split without a color
  return true;
}

bool Communicator::is_ready() {
  if (handle_ == nullptr) check_usable();
  if (creating_) return is_created();
  const Outcome state = state_of(handle_);
  if (state.code == anycclInProgress) return false;
  raise_unless_ok(state);
  return true;
}

void Communicator::wait_until_ready(Seconds timeout) {
  const CommunicatorPtr alive = shared_from_this();
  const Countdown countdown(timeout);
  std::chrono::microseconds pause(10);
  while (!is_ready()) {  // the library has no wait for it
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (countdown.is_over())
      raise(anycclInProgress,
            "the communicator is not ready after " + std::to_string(*timeout) + " s; it goes on");
    const Unlocked released;
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(2 * pause, std::chrono::milliseconds(1));
  }
}

void Communicator::finalize(Seconds timeout) {
  need_no_group("finalize");
  if (inside_ > 0)
    raise(anycclInvalidUsage,
          "another thread is inside a call on this communicator: finalize it when it has returned");
  const unsigned most = milliseconds(timeout);
  wait_for_interrupted(*this);
  const Call turn(*this);
  finalized_ = true;
  const Outcome outcome = unlocked([&] { return anycclCommFinalizeFor(turn.handle, most); });
  if (outcome.code != anycclInProgress) return raise_unless_ok(outcome);
  if (waits_) wait_until_ready(std::nullopt);
}

}  // namespace anyccl::python
