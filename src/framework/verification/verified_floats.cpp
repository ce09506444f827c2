// Verification of sums of floats: are they within what rounding explains, and if not, whose
// contribution is wrong?

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "framework/verification/verification.hpp"

namespace anyccl {

/// What a lane of a set is off by.
struct Verification::FloatLane {
  std::size_t set, lane;
  double off = 0, tolerance = 0;
  const char* special = nullptr;  ///< What is wrong with infinities and NaNs.
  std::size_t giver = 0;          ///< Whose they are.
  bool is_wrong() const { return special != nullptr || std::abs(off) > tolerance; }
};

/// which: 0, the sum; 1, the norm.
double Verification::sum_or_norm(const std::uint64_t* words, std::size_t set, std::size_t b,
                                 std::size_t which) const {
  const std::size_t lanes = call_.method.lanes(most_elements());
  return std::bit_cast<double>(words[(set * lanes + b) * 2 + which]);
}

Verification::FloatLane Verification::lane_of(std::size_t set, std::size_t b) const {
  const Method& method = call_.method;
  const Roundings& roundings = call_.roundings;
  FloatLane lane{set, b};
  double sum = 0, terms = 0;
  bool is_finite = true;
  for (std::size_t r = 0; r < n(); ++r) {
    if (!is_summand(r)) continue;
    const std::uint64_t* const words = given_by(r) + kHeadWords;
    const double s = sum_or_norm(words, set, b, 0), norm = sum_or_norm(words, set, b, 1);
    if (is_finite && !(std::isfinite(s) && std::isfinite(norm))) {
      is_finite = false;
      lane.giver = r;
    }
    sum += s;
    terms += norm;
  }
  const double y = sum_or_norm(result_.data(), set, b, 0);
  double norm = sum_or_norm(result_.data(), set, b, 1);
  // Squares of numbers of f64 overflow, too: nothing is known then, if they are the contributions'.
  // The norm of a right result is at most this.
  const bool is_f64 = method.dtype == DType::f64;
  const bool may_overflow = is_f64 && method.widen == nullptr;
  if (may_overflow && (!is_finite || !std::isfinite(terms))) return lane;
  if (is_f64 && std::isinf(norm)) norm = 2 * terms * std::abs(roundings.factor);
  const bool is_finite_result = std::isfinite(y) && std::isfinite(norm);
  if (!is_finite) {
    if (is_finite_result) lane.special = "are finite, but not the contribution of ";
    return lane;
  }
  if (!is_finite_result) {
    if (terms < roundings.overflow)
      lane.special = "are infinite or no numbers, but contributions are not";
    return lane;
  }
  const std::size_t units = result_of(0).elements * method.per_element;
  const std::size_t in_set = std::min(units - set * method.set, method.set);
  const std::size_t lanes = method.lanes(most_elements()) * method.sets(most_elements()) * n();
  lane.off = y - sum * roundings.factor;
  lane.tolerance =
      anyccl::tolerance(roundings, (in_set + 63) / 64, static_cast<double>(lanes), terms, norm);
  return lane;
}

/// Names the rank whose contribution explains all of it, if there is just one.
std::string Verification::fault_of_floats(const std::vector<FloatLane>& wrong) const {
  std::string fault;
  int explanations = 0;
  for (std::size_t r = 0; r < n(); ++r) {
    if (!is_summand(r)) continue;
    for (const double times : {-1.0, 1.0}) {
      const bool explains = std::all_of(wrong.begin(), wrong.end(), [&](const FloatLane& lane) {
        const double s =
            sum_or_norm(given_by(r) + kHeadWords, lane.set, lane.lane, 0) * call_.roundings.factor;
        return std::abs(s) > lane.tolerance && std::abs(lane.off - times * s) <= 2 * lane.tolerance;
      });
      if (!explains) continue;
      ++explanations;
      fault = fmt::format(": the contribution of {} is {}", name(r),
                          times < 0 ? "missing" : "in it twice");
    }
  }
  return explanations == 1 ? fault : "";
}

Status Verification::compare_floats(std::size_t set) const {
  std::vector<FloatLane> wrong_lanes;
  const std::size_t lanes = std::min(call_.method.lanes(most_elements()),
                                     result_of(0).elements * call_.method.per_element);
  for (std::size_t b = 0; b < lanes; ++b) {
    const FloatLane lane = lane_of(set, b);
    if (!lane.is_wrong()) continue;
    if (lane.special != nullptr) {
      const bool names_giver =
          lane.special[std::char_traits<char>::length(lane.special) - 1] == ' ';
      return wrong(fmt::format("{} {}{}", elements_of(set), lane.special,
                               names_giver ? name(lane.giver) : ""));
    }
    wrong_lanes.push_back(lane);
  }
  if (wrong_lanes.empty()) return {};
  const FloatLane& worst = *std::max_element(
      wrong_lanes.begin(), wrong_lanes.end(), [](const FloatLane& a, const FloatLane& b) {
        return std::abs(a.off) * b.tolerance < std::abs(b.off) * a.tolerance;
      });
  return wrong(fmt::format("{} are off by {:.1e} where rounding explains {:.1e}{}",
                           elements_of(set), std::abs(worst.off), worst.tolerance,
                           fault_of_floats(wrong_lanes)));
}

}  // namespace anyccl
