#pragma once

#include "simulate/calibration.hpp"

namespace anyccl::cli {

/// Measures what one core takes to add and to copy, and what all cores take that copy at once, and
/// fits the calibration's constants to it. Its threads have ended when it returns. Errors: those of
/// reduce_kernel().
Status measure_processor(Calibration& calibration);

}  // namespace anyccl::cli
