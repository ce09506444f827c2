#include "faults.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <string>
#include <thread>

#include "settings.hpp"

namespace anyccl::simulated {
namespace {

struct CountedFault {
  explicit CountedFault(const PlannedFault& fault) : plan(fault) {}
  const PlannedFault& plan;
  std::atomic<std::uint64_t> seen{0};  // Pairs with nothing: it is a count.
};

std::deque<CountedFault>& faults() {
  static auto& all =
      *new std::deque<CountedFault>(settings().faults.begin(), settings().faults.end());
  return all;
}

// Pairs with nothing: what a thread does when the device is lost needs no other thread's data.
std::atomic<bool> device_is_lost{false};

}  // namespace

bool strikes(std::string_view name) {
  bool any = false;
  for (CountedFault& fault : faults()) {
    if (!name.starts_with(fault.plan.name)) continue;
    if (fault.seen.fetch_add(1, std::memory_order_relaxed) + 1 != fault.plan.at) continue;
    any = true;
    std::fprintf(stderr, "simulated driver: SIMULATED_CUDA_FAIL: %s, number %llu of %s\n",
                 std::string(name).c_str(), static_cast<unsigned long long>(fault.plan.at),
                 fault.plan.name.c_str());
  }
  return any;
}

void lose_device() {
  device_is_lost.store(true, std::memory_order_relaxed);
}
bool is_lost() {
  return device_is_lost.load(std::memory_order_relaxed);
}

std::uint64_t random_bits() {
  static std::atomic<std::uint64_t> threads{0};  // Pairs with nothing: it is a count.
  thread_local std::uint64_t state =
      (settings().chaos_seed + static_cast<std::uint64_t>(getpid())) * 0x9e3779b97f4a7c15U +
      threads.fetch_add(1, std::memory_order_relaxed) * 77 + 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

bool is_chaotic() {
  return settings().chaos_seed != 0;
}

void dither() {
  if (!is_chaotic()) return;
  const std::uint64_t bits = random_bits();
  if (bits % 4 == 0) {
    const std::uint64_t us = bits / 4 % settings().chaos_most_us;
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  } else if (bits % 4 == 1) {
    std::this_thread::yield();
  }
}

}  // namespace anyccl::simulated
