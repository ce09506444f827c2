#include "simulate/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace anyccl::cli {

namespace {

/// One equation: a * x + b * y is about 1, which is the measured time as a multiple of itself. So
/// each size counts as much as another one, though one takes a thousand times as long.
struct Equation {
  double x = 0, y = 0;
};

struct Solution {
  double a = 0, b = 0;
};

double squares_left(std::span<const Equation> equations, const Solution& s) {
  double sum = 0;
  for (const Equation& e : equations) sum += std::pow(s.a * e.x + s.b * e.y - 1, 2);
  return sum;
}

/// The least squares with a, b >= 0: the free minimum if it is there, or else the better one of the
/// two edges.
Solution solve(std::span<const Equation> equations) {
  double xx = 0, xy = 0, yy = 0, x = 0, y = 0;
  for (const Equation& e : equations) {
    xx += e.x * e.x;
    xy += e.x * e.y;
    yy += e.y * e.y;
    x += e.x;
    y += e.y;
  }
  const double determinant = xx * yy - xy * xy;
  if (determinant > 1e-12 * xx * yy) {
    const Solution free = {(x * yy - y * xy) / determinant, (y * xx - x * xy) / determinant};
    if (free.a >= 0 && free.b >= 0) return free;
  }
  const Solution only_a = {xx > 0 ? x / xx : 0, 0}, only_b = {0, yy > 0 ? y / yy : 0};
  return squares_left(equations, only_a) <= squares_left(equations, only_b) ? only_a : only_b;
}

/// One equation for each size above one limit and up to another one.
std::vector<Equation> equations_between(std::span<const Timing> timings, double from, double to) {
  std::vector<Equation> equations;
  for (const Timing& t : timings)
    if (t.bytes > from && t.bytes <= to) equations.push_back({1 / t.seconds, t.bytes / t.seconds});
  return equations;
}

Status check(const std::string& name, std::span<const Timing> timings) {
  for (const Timing& t : timings)
    if (!(t.seconds > 0) || !std::isfinite(t.seconds) || t.bytes < 0)
      return error(Code::invalid_argument, "{}: {} bytes took {} s, which is no time to fit to",
                   name, t.bytes, t.seconds);
  if (timings.size() < 2)
    return error(Code::invalid_argument, "{}: a line needs two sizes, and {} were measured", name,
                 timings.size());
  return {};
}

}  // namespace

std::vector<double> protocol_limits() {
  // LL, LL128, one tile, and what caches hold.
  return {56, 2048, 64 << 10, 1 << 20, 4 << 20, std::numeric_limits<double>::infinity()};
}

Result<LinkCosts> fit_link(const std::string& name, std::span<const Timing> timings) {
  ANYCCL_CHECK(check(name, timings));
  LinkCosts link;
  link.name = name;
  link.points = static_cast<int>(timings.size());
  double from = -1;
  for (const double limit : protocol_limits()) {
    const std::vector<Equation> equations = equations_between(timings, from, limit);
    if (equations.size() >= 2) {
      const Solution s = solve(equations);
      link.segments.push_back({limit, s.a, s.b});
    } else if (link.segments.empty()) {
      continue;  // together with the next one
    } else {
      link.segments.back().most_bytes = limit;
    }
    from = limit;
  }
  double squares = 0;
  for (const Timing& t : timings) squares += std::pow(link.seconds(t.bytes) / t.seconds - 1, 2);
  link.residual = std::sqrt(squares / static_cast<double>(timings.size()));
  return link;
}

Status fit_additions(std::span<const Timing> timings, Calibration& calibration) {
  ANYCCL_CHECK(check("additions", timings));
  std::vector<Equation> equations;
  for (const Timing& t : timings)
    equations.push_back({t.operands * t.bytes / t.seconds, t.bytes / t.seconds});
  const Solution s = solve(equations);
  calibration.read_s = s.a;
  calibration.write_s = s.b;
  calibration.reduce_residual =
      std::sqrt(squares_left(equations, s) / static_cast<double>(equations.size()));
  return {};
}

}  // namespace anyccl::cli
