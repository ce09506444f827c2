#pragma once
// The part of the state file that is not memory of devices. A process may be killed at any store to
// it, so it means something after each of them; its lock passes on from the dead.

#include <cstddef>
#include <cstdint>

#include "settings.hpp"

namespace anyccl::simulated {

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kHeaderBytes = std::size_t{4} << 20;
inline constexpr int kEngines = 3;
inline constexpr std::uint32_t kIntervals = 256;
inline constexpr std::uint32_t kWrites = 64;
inline constexpr std::uint32_t kWords = 2048;
inline constexpr std::uint32_t kExtents = 8192;

struct Interval {
  double begin, end;
};
/// When an engine is busy, in order.
struct EngineTimes {
  std::uint32_t count;
  double floor;  ///< Gaps before it are forgotten.
  Interval busy[kIntervals];
};
/// The last writes of a word.
struct WordTimes {
  std::uint64_t word;
  std::uint32_t next;
  std::uint32_t value[kWrites];
  double time[kWrites];
};
/// Memory that a process has allocated. The owner is written last when it is taken, and it alone
/// when it is given back.
struct SharedExtent {
  std::uint32_t owner;  ///< A process; 0: the extent is free.
  std::uint64_t first, pages, id;
};
struct SharedState {
  std::uint32_t magic;
  std::uint32_t holder;  ///< The process that has the lock; 0: none has it.
  std::uint64_t devices, device_bytes, ids;
  std::uint64_t machine;  ///< Processes with other files are on other machines.
  EngineTimes engines[kMostDevices][kEngines];
  WordTimes words[kWords];
  SharedExtent extents[kMostDevices][kExtents];
};
static_assert(sizeof(SharedState) <= kHeaderBytes);

/// Opened at the first use.
SharedState& shared_state();

/// Locks the shared state, unseen by ThreadSanitizer, as machine.cpp is compiled without it: that
/// two devices take turns orders nothing that they do.
class SharedLock {
 public:
  SharedLock();
  ~SharedLock();
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
};

}  // namespace anyccl::simulated
