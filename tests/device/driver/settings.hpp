#pragma once
// Settings of the simulated driver: the variables SIMULATED_CUDA_... of the environment, which only
// this file's source reads, once, at the first call. A wrong one ends the program.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace anyccl::simulated {

inline constexpr int kMostDevices = 8;

/// Durations in nanoseconds, and rates in bytes per nanosecond.
struct Model {
  double link = 26;     ///< Between a device and the host, in each direction.
  double device = 700;  ///< The memory of a device.
  double copy = 1700;   ///< Until a copy begins.
  double launch = 2500;
  double memop = 900;  ///< A stream waits for a word, or writes one.
  double hostfn = 8000;
  double call = 1400;       ///< The host puts work into a stream.
  double small_call = 700;  ///< Any other call.
  double sync = 4000;
  double poll = 300;
};

/// A call that is to fail, by its number among those that the name covers.
struct PlannedFault {
  std::string name;  ///< Begins the names of functions, or is "lost" or "killed".
  std::uint64_t at = 0;
};

struct Settings {
  int devices = 2;
  std::size_t device_bytes = std::size_t{256} << 20;
  std::string state;             ///< A file; empty: no other process shares the machine.
  std::string kernels;           ///< A library; empty: kernels are in the program.
  std::uint64_t chaos_seed = 0;  ///< 0: nothing is delayed.
  unsigned chaos_most_us = 200;
  std::vector<PlannedFault> faults;
  unsigned connections = 0;  ///< 0: each stream has a hardware queue of its own.
  bool one_priority = false;
  std::size_t depth = 0;  ///< 0: a hardware queue is never full.
  bool memops = true;
  bool read_only = true;
  bool ipc = true;
  bool p2p = false;
  bool pageable = false;
  bool trace = false;
  Model model;
};

const Settings& settings();

/// Says why on stderr and ends the program, with exit status 2.
[[noreturn]] void refuse(const std::string& why);

}  // namespace anyccl::simulated
