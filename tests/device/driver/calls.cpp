#include "calls.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "contexts.hpp"
#include "faults.hpp"
#include "settings.hpp"

namespace anyccl::simulated {
namespace {

std::atomic<pid_t> initialised_process{0};  // Pairs with nothing: a number alone.

bool is_initialised() {
  return initialised_process.load(std::memory_order_relaxed) == getpid();
}

}  // namespace

bool& is_in_host_function() {
  thread_local bool is_in = false;
  return is_in;
}

void initialise() {
  initialised_process.store(getpid(), std::memory_order_relaxed);
}

cuda::Error enter(const char* name, Needs needs, cuda::Error on_fault) {
  if (settings().trace) std::fprintf(stderr, "simulated driver: %d calls %s\n", getpid(), name);
  const pid_t initialised = initialised_process.load(std::memory_order_relaxed);
  const bool is_forked = initialised != 0 && !is_initialised();
  if (is_forked || (needs >= Needs::driver && initialised == 0)) return cuda::kNotInitialized;
  if (needs >= Needs::device && is_lost()) return cuda::kLaunchFailed;
  if (needs >= Needs::device && is_in_host_function()) return kNotPermitted;
  if (strikes(name)) return on_fault;
  if (needs >= Needs::context && current_context() == nullptr) return cuda::kInvalidContext;
  host_time() += settings().model.small_call;
  return cuda::kSuccess;
}

}  // namespace anyccl::simulated
