#include "adapter/c/in_call.hpp"

#include <array>
#include <thread>

#include "adapter/c/handle.hpp"
#include "base/fences.hpp"

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

/// The handles that one thread is in calls with.
struct Calls {
  std::array<std::atomic<const anycclComm*>, InCall::kDeepest> handles{};
  std::size_t depth = 0;                   // the thread's own
  const bool is_fenced = fences_others();  // else its stores are fences
  std::atomic<bool> has_thread{true};
  Calls* next = nullptr;  // set once, before others see it
};

/// Of all threads; they are never freed, and taken by the next thread.
std::atomic<Calls*> all_calls{nullptr};

// In the space that is set aside at start, so that asking costs one load.
[[gnu::tls_model("initial-exec")]] thread_local constinit Calls* mine = nullptr;

struct GiveBack {
  ~GiveBack() {
    // Pairs with the exchange in calls_here(): the next thread finds all as this one left it.
    if (mine != nullptr) mine->has_thread.store(false, std::memory_order_release);
    mine = nullptr;
  }
};

Calls& calls_here() {
  static thread_local GiveBack at_end;
  static_cast<void>(&at_end);
  for (Calls* one = all_calls.load(std::memory_order_acquire); one != nullptr; one = one->next)
    if (!one->has_thread.load(std::memory_order_relaxed) &&
        !one->has_thread.exchange(true, std::memory_order_acquire))
      return *(mine = one);
  auto* const made = new Calls;
  made->next = all_calls.load(std::memory_order_relaxed);
  while (!all_calls.compare_exchange_weak(made->next, made, std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
  return *(mine = made);
}

}  // namespace

InCall::InCall(anycclComm* handle) : handle_(handle) {
  if (handle == nullptr) return;
  Calls& here = mine != nullptr ? *mine : calls_here();
  if (here.depth == kDeepest) {
    handle_ = nullptr;  // never comes: the library calls the program at most twice within a call
    return;
  }
  std::atomic<const anycclComm*>& place = here.handles[here.depth++];
  // With the load of `open` behind it, pairs with await_calls(): one of the two sees the other.
  if (here.is_fenced) {
    place.store(handle, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    place.store(handle, std::memory_order_seq_cst);
  }
}

InCall::~InCall() {
  if (handle_ == nullptr) return;
  const bool is_left_over = handle_->is_left_over.load(std::memory_order_relaxed);
  // Pairs with the acquire in await_calls(): the call is over there, too.
  mine->handles[--mine->depth].store(nullptr, std::memory_order_release);
  if (is_left_over) empty_left_over();
}

bool await_calls(const anycclComm& handle, Deadline deadline) {
  if (fences_others()) fence_all();
  for (const Calls* one = all_calls.load(std::memory_order_acquire); one != nullptr;
       one = one->next) {
    if (one == mine) continue;
    for (const auto& place : one->handles)
      while (place.load(std::memory_order_seq_cst) == &handle) {
        if (deadline.passed()) return false;
        std::this_thread::yield();
      }
  }
  return true;
}

}  // namespace anyccl
