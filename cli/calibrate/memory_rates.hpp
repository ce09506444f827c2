#pragma once

#include <vector>

#include "anyccl/status.hpp"
#include "simulate/calibration.hpp"

namespace anyccl::cli {

/// What a byte takes, with so many bytes in turns.
struct WorkingSetTiming {
  double bytes = 0;
  double copy_s = 0, read_s = 0;
};

/// A copy reads and writes, so what it takes more than reading is writing. Larger working sets are
/// never faster: where they were, the smaller one was disturbed. `timings`: by ascending sizes.
std::vector<MemoryRate> rates_of(const std::vector<WorkingSetTiming>& timings);

/// Measures memory_alone with one thread and memory_shared with `cores` threads, which must be set,
/// in some seconds. Errors: unsupported on a CPU without kernels.
Status measure_memory(Calibration& calibration);

}  // namespace anyccl::cli
