#pragma once

#include "simulate/calibration.hpp"

namespace anyccl::cli {

/// Measures what one core takes to add and to copy, what all cores take that copy at once, and, by
/// measure_memory(), the memory rates; fits the calibration's constants to it. Its threads have
/// ended when it returns. Errors: those of reduce_kernel().
Status measure_processor(Calibration& calibration);

}  // namespace anyccl::cli
