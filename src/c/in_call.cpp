#include "c/in_call.hpp"

#include <thread>

#include "base/fences.hpp"
#include "c/handle.hpp"

namespace anyccl {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kSeesFences = false;  // the sanitizer does not know of membarrier(2)
#else
constexpr bool kSeesFences = true;
#endif

bool fences_others() {
  return kSeesFences && join_fences();
}

/// The calls of all threads. They are never freed, but taken by the next thread.
std::atomic<Calls*> all_calls{nullptr};

struct GiveBack {
  ~GiveBack() {
    // Pairs with the exchange in take_calls(): the next thread finds all as this one left it.
    if (calls_here != nullptr) calls_here->has_thread.store(false, std::memory_order_release);
    calls_here = nullptr;
  }
};

}  // namespace

thread_local constinit Calls* calls_here = nullptr;

Calls& take_calls() {
  static thread_local GiveBack at_end;
  static_cast<void>(&at_end);
  for (Calls* one = all_calls.load(std::memory_order_acquire); one != nullptr; one = one->next)
    if (!one->has_thread.load(std::memory_order_relaxed) &&
        !one->has_thread.exchange(true, std::memory_order_acquire))
      return *(calls_here = one);
  auto* const made = new Calls(fences_others());
  made->next = all_calls.load(std::memory_order_relaxed);
  while (!all_calls.compare_exchange_weak(made->next, made, std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
  return *(calls_here = made);
}

bool await_calls(const anycclComm& handle, Deadline deadline) {
  if (fences_others()) fence_all();
  for (const Calls* one = all_calls.load(std::memory_order_acquire); one != nullptr;
       one = one->next) {
    if (one == calls_here) continue;
    for (const auto& place : one->handles)
      while (place.load(std::memory_order_seq_cst) == &handle) {
        if (deadline.passed()) return false;
        std::this_thread::yield();
      }
  }
  return true;
}

}  // namespace anyccl
