#include "platform/probe/oversubscription.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "base/fork.hpp"
#include "base/per_process.hpp"
#include "base/recent.hpp"
#include "platform/probe/text_file.hpp"

namespace anyccl::probe {
namespace {

using namespace std::chrono_literals;
constexpr auto kEvery = 200ms;  // reading a short list takes 30 us: measured
/// A long list, which many ranks read, takes no more than this part of a rank's time.
constexpr int kPart = 500;
constexpr auto kSeldom = 10s;
constexpr std::string_view kName = "anyccl-ranks-";

/// A socket that nobody talks to, with a name that says `ranks`.
UniqueFd open_shown_socket(int ranks) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) return {};
  const std::string name = fmt::format("{}{}-{:x}", kName, ranks, random);
  sockaddr_un address{AF_UNIX, {}};
  name.copy(&address.sun_path[1], sizeof address.sun_path - 1);  // after a zero: it is abstract
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) return {};
  ::shutdown(fd.get(), SHUT_RD);
  return fd;
}

/// Returns how many CPUs are online, also those that this process may not use. It is kept for a
/// second, as each look at it reads a file, and each communicator looks several times.
long core_count() {
  return per_process<Recent<long>>().get(
      std::chrono::seconds(1), [] { return std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)); });
}

/// The CPU time that this thread has used.
std::chrono::nanoseconds cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

long count_ranks(const std::string& sockets) {
  constexpr int kMost = 1 << 16;
  long sum = 0;
  for (auto at = sockets.find(kName); at != std::string::npos; at = sockets.find(kName, at + 1)) {
    int ranks = 0;
    const char* const first = sockets.data() + at + kName.size();
    std::from_chars(first, sockets.data() + sockets.size(), ranks);
    sum += std::clamp(ranks, 0, kMost);  // anybody can make such a name
  }
  return sum;
}

OversubscriptionMonitor& OversubscriptionMonitor::of_process() {
  return per_process<OversubscriptionMonitor>();
}

OversubscriptionMonitor::Registration OversubscriptionMonitor::add(int ranks, long on_host,
                                                                   long beside) {
  watch_forks();
  const std::lock_guard lock(mutex_);
  if (std::exchange(generation_, fork_generation()) != fork_generation()) {
    registered_.clear();
    beside_ = {0};
    shown_ = 0;
  }
  registered_.insert(ranks);
  beside_.insert(beside);
  show_most();
  if (on_host + beside > core_count()) {
    note(std::max(on_host + beside, ranks_.load(std::memory_order_relaxed)));
    wait_for(Clock::now(), kEvery * crowding());
  } else {
    next_.store(0, std::memory_order_relaxed);
    refresh();
  }
  return Registration(*this, ranks, beside, generation_);
}

void OversubscriptionMonitor::leave(int ranks, long beside, std::uint64_t generation) {
  if (generation != fork_generation()) return;
  const std::lock_guard lock(mutex_);
  registered_.extract(ranks);
  beside_.extract(beside);
  show_most();
}

void OversubscriptionMonitor::show_most() {
  most_beside_.store(*beside_.rbegin(), std::memory_order_relaxed);
  const int most = registered_.empty() ? 0 : *registered_.rbegin();
  if (most == std::exchange(shown_, most)) return;
  socket_ = PrivateFd(most == 0 ? UniqueFd() : open_shown_socket(most));
}

void OversubscriptionMonitor::refresh() {
  const Clock::time_point now = Clock::now();
  auto next = next_.load(std::memory_order_relaxed);
  if (now.time_since_epoch().count() < next ||
      !next_.compare_exchange_strong(next, (now + kEvery).time_since_epoch().count(),
                                     std::memory_order_relaxed))
    return;
  const std::chrono::nanoseconds before = cpu_time();
  note(count_ranks(read_text("/proc/net/unix")) + most_beside_.load(std::memory_order_relaxed));
  wait_for(now, kPart * crowding() * (cpu_time() - before));
}

void OversubscriptionMonitor::note(long ranks) {
  ranks_.store(ranks, std::memory_order_relaxed);
  oversubscribed_.store(ranks > core_count(), std::memory_order_relaxed);
  crowding_.store(static_cast<int>(std::max(1L, ranks / core_count() / 4)),
                  std::memory_order_relaxed);
}

/// Until they are counted again.
void OversubscriptionMonitor::wait_for(Clock::time_point now, std::chrono::nanoseconds time) {
  const auto next = now + std::clamp<std::chrono::nanoseconds>(time, kEvery, kSeldom);
  next_.store(next.time_since_epoch().count(), std::memory_order_relaxed);
}

}  // namespace anyccl::probe
