#pragma once

#include <span>
#include <string>
#include <vector>

#include "simulate/calibration.hpp"

namespace anyccl::cli {

/// One measured time, of a message, or of k operands that are added.
struct Timing {
  double bytes = 0;
  double seconds = 0;
  double operands = 0;
};

/// Sizes at which segments end: those where a library changes its protocol, the last one infinite.
std::vector<double> protocol_limits();

/// alpha and beta of each segment, by least squares of the relative errors; neither is negative. A
/// segment with fewer than two sizes is left to the one before it, at the beginning to the next.
/// Errors: invalid_argument with `name`, for fewer than two sizes or a time that is not above 0.
Result<LinkCosts> fit_link(const std::string& name, std::span<const Timing> timings);

/// read_s, write_s and reduce_residual, from timings with operands; neither time is negative.
/// Errors: as above.
Status fit_additions(std::span<const Timing> timings, Calibration& calibration);

}  // namespace anyccl::cli
