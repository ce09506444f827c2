#include "runtime/process/dump_signal.hpp"

#include <atomic>
#include <csignal>

#include "base/log.hpp"

namespace anyccl {
namespace {

std::atomic<bool> was_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a handler writes it");

void ask(int) {
  was_asked.store(true, std::memory_order_relaxed);
}

}  // namespace

bool take_dump_signal(int signal) {
  struct sigaction now {};
  if (::sigaction(signal, nullptr, &now) != 0) return false;
  if (now.sa_handler == ask) return true;  // as in a child of a process that has taken it
  if (now.sa_handler != SIG_DFL) {
    log(LogLevel::warn,
        "the program handles the signal of ANYCCL_DUMP_SIGNAL itself: it writes no dumps");
    return false;
  }
  now = {};
  now.sa_handler = ask;
  now.sa_flags = SA_RESTART;
  return ::sigaction(signal, &now, nullptr) == 0;
}

bool dumps_were_asked_for() {
  return was_asked.exchange(false, std::memory_order_relaxed);
}

}  // namespace anyccl
