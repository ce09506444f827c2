#include "plan/measured_links.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "simulate/calibration.hpp"

namespace anyccl::cli {

Status use_measured_links(const std::string& text, const std::string& file,
                          std::span<const std::string> classes, Cluster& cluster) {
  ANYCCL_TRY(const Calibration calibration, read_calibration(text, file));
  for (const std::string& name : classes) {
    const bool inside = name == kLinkClasses[0];
    const LinkCosts* const link = calibration.find(inside ? "shm" : "tcp");
    if (link == nullptr)
      return error(Code::invalid_argument, "{} has no link {}, which is what '{}' would be", file,
                   inside ? "shm" : "tcp", name);
    const CostSegment& longest = link->segments.back();
    if (longest.beta_s <= 0)
      return error(Code::invalid_argument, "{}: long messages of {} take no time", file,
                   link->name);
    (inside ? cluster.inside : cluster.between) = {1e-9 / longest.beta_s,
                                                   1e6 * link->segments.front().alpha_s};
    cluster.measured += fmt::format(
        "{}{}: {} of {} on {}, fitted within {:.0f} %, {:.3g} GB/s and {:.3g} us",
        cluster.measured.empty() ? "" : "; ", name, link->name, calibration.host, calibration.date,
        link->residual * 100, 1e-9 / longest.beta_s, 1e6 * link->segments.front().alpha_s);
  }
  return {};
}

}  // namespace anyccl::cli
