#pragma once

#include <string>
#include <vector>

#include "anyccl/status.hpp"
#include "calibrate/links.hpp"
#include "simulate/calibration.hpp"

namespace anyccl::cli {

/// All constants, from what links were seen to do in one or more jobs; those of the processor are
/// `processor`'s.
/// Errors: those of fit_link(); invalid_argument without a link.
Result<Calibration> fit_calibration(const std::vector<LinkTimings>& timings,
                                    const Calibration& processor);

/// The measured times, with their spread, beside those of the fit; and the constants.
std::string report(const std::vector<LinkTimings>& timings, const Calibration& calibration);

/// Measures the links of `comm`, or, if that is null, those of two and of four local ranks over
/// shared memory and TCP, for which it starts this very command with --links-part FILE; and the
/// processor. Rank 0 writes the file and returns the text for people, other ranks an empty one.
/// Errors: those of all steps; system_error if a job failed.
Result<std::string> calibrate(const std::string& file, const Comm* comm);

/// Measures, as one rank of a job of calibrate(), the link if there are two ranks, else how slow
/// pairs are at once. Rank 0 leaves what it measured in the file.
Status calibrate_part(const std::string& part);

}  // namespace anyccl::cli
