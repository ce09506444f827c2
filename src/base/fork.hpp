#pragma once
// A forked child has copies of all objects of the library, but none of its threads. The functions
// here tell objects whether they belong to the parent, and what must not reach a child is closed
// there.

#include <atomic>
#include <cstdint>
#include <mutex>

namespace anyccl {

namespace detail {
extern std::atomic<std::uint64_t> forks;
}

/// From now on forks are counted. Called before fork_generation() is kept.
void watch_forks();

/// How often this process has become another one by fork: what was made under another number
/// belongs to the parent.
inline std::uint64_t fork_generation() {
  return detail::forks.load(std::memory_order_relaxed);
}

/// Forked children close `fd` before they do anything else, until keep_in_children(). Any thread,
/// once watch_forks() has been called.
void close_in_children(int fd);
void keep_in_children(int fd);

/// From now on no thread holds `mutex`, which is never destroyed, when the process forks: the child
/// finds what it guards whole. Its holders lock no other mutex.
void hold_across_forks(std::mutex& mutex);

}  // namespace anyccl
