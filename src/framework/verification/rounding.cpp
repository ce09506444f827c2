#include "framework/verification/rounding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/types.hpp"

namespace anyccl {
namespace {

struct Precision {
  double unit;   ///< The error of a rounding to the type, relative,
  double least;  ///< and absolute, of subnormal numbers.
  double most;   ///< The largest number.
};

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {0x1p-53, 0, 0x1p1023};
    case DType::f16:
      return {0x1p-11, 0x1p-25, 65504};
    case DType::bf16:
      return {0x1p-8, 0x1p-134, 0x1p127};
    case DType::f8e4m3:
      return {0x1p-4, 0x1p-10, 448};
    case DType::f8e5m2:
      return {0x1p-3, 0x1p-17, 57344};
    default:
      return {0x1p-24, 0x1p-150, 0x1p127};
  }
}

/// After `times` roundings.
double grown(double unit, double times) {
  return std::expm1(times * std::log1p(unit));
}

/// Adds the rounding of the last conversion, where it rounds.
void round_result(Roundings& r, DType sum, DType output) {
  if (bytes_of(output) >= bytes_of(sum)) return;
  const Precision p = precision_of(output);
  r.by_result += p.unit / (1 - p.unit);
  r.least += 2 * p.least;
  r.overflow = std::min(r.overflow, p.most / 2 / (1 + r.by_terms) / r.factor);
}

}  // namespace

Roundings roundings_of(DType sum, DType output, const Additions& additions) {
  const Precision p = precision_of(sum);
  constexpr double kWide = 0x1p-24;
  const bool is_small = sum != DType::f32 && sum != DType::f64;
  const auto n = static_cast<unsigned>(additions.ranks);
  const double depth = additions.is_tree ? std::bit_width(n - 1) : n - 1;
  const double products = additions.is_multiplied ? (additions.is_complex ? 2 : 1) : 0;
  const double quotients = additions.is_average ? 1 : 0;
  Roundings r;
  if (!is_small)
    r.by_terms = grown(p.unit, depth + products + quotients);
  else if (additions.is_tree)
    // The one rounding of the sum, and that of the quotient, are relative to what is rounded.
    r.by_terms = grown(kWide, depth) + (1 + grown(kWide, depth)) * grown(p.unit, products);
  else
    r.by_terms = grown(p.unit + kWide, depth + products + quotients);
  if (is_small && additions.is_tree)
    r.by_result = 1.0 / (1 - p.unit) * p.unit * (1 + quotients) * (1 + p.unit);
  r.least = p.least * (depth + products + quotients + 1) * 2;
  r.overflow = p.most / 2 / (1 + r.by_terms);
  r.vanishing = sum == DType::f64 ? 0x1p-500 : 0;
  r.ranks = n;
  if (additions.is_average) r.factor = 1.0 / n;
  round_result(r, sum, output);
  return r;
}

double tolerance(const Roundings& r, std::size_t rows, double lanes, double terms, double result) {
  constexpr double kOwn = 0x1p-52;  // of the sums that are compared, which are rounded, too
  const auto m = static_cast<double>(rows);
  const double unseen = r.vanishing * std::sqrt(m);
  const double all_terms = terms * r.factor * (1 + m * kOwn) + unseen,
               own = result * (1 + m * kOwn) + unseen;
  const double error = r.by_terms * all_terms + r.by_result * own + r.least * std::sqrt(m);
  // Few rows are at most this far off, whatever their signs (Cauchy and Schwarz).
  const double confidence = std::min(std::sqrt(2 * std::log(2 * lanes * 1e9)), std::sqrt(m));
  return confidence * error + kOwn * (m + 16 + r.ranks) * std::sqrt(m) * (all_terms + own) * 2;
}

}  // namespace anyccl
