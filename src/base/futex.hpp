#pragma once
// Threads sleep on a word of memory by futex(2), also of memory that processes share. Doorbells and
// the shm transport do so.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace anyccl {

/// Which threads may wait on the word: of this process only, or of all that have it mapped.
enum class FutexScope : int { process = FUTEX_PRIVATE_FLAG, shared = 0 };

/// Blocks while the word has this value, at most `most`, less than a second. It may return early.
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                       std::chrono::nanoseconds most, FutexScope scope) {
  const timespec limit{0, static_cast<long>(most.count())};
  ::syscall(SYS_futex, &word, FUTEX_WAIT | static_cast<int>(scope), value, &limit, nullptr, 0);
}

/// Ends the waits of at most `threads` threads.
inline void futex_wake(const std::atomic<std::uint32_t>& word, int threads, FutexScope scope) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE | static_cast<int>(scope), threads, nullptr, nullptr, 0);
}

}  // namespace anyccl
