// Which elements of a vector are large: by a sample, or exactly.
//
// Magnitudes are compared as bits without the sign, which order like them, with infinities and then
// NaNs at the top: so what is not finite is taken first, and the peers see it.

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <vector>

#include "base/error.hpp"
#include "platform/reduce/sparse.hpp"

namespace anyccl {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffff, kNothing = 0x80000000;
// A prime, so that it does not fall in step with the rows of a matrix.
constexpr std::size_t kStride = 61;
constexpr std::size_t kWhole = 8192;  // Vectors up to this one are their own sample.

std::uint32_t magnitude(const float* x, std::size_t i) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, reinterpret_cast<const std::byte*>(x) + i * sizeof bits, sizeof bits);
  return bits & kMagnitude;
}

/// The magnitudes of elements at fixed places.
class Sample {
 public:
  explicit Sample(SparseVector x) : step_(x.count <= kWhole ? 1 : kStride) {
    sample_.reserve(x.count / step_ + 1);
    for (std::size_t i = 0; i < x.count; i += step_) sample_.push_back(magnitude(x.data, i));
  }
  /// The bits that about `keep` elements reach, 1 or more of them.
  std::uint32_t reached_by(std::size_t keep) {
    const std::size_t rank = std::clamp((keep + step_ / 2) / step_, std::size_t{1}, sample_.size());
    const auto at = sample_.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(sample_.begin(), at, sample_.end(), std::greater<>());
    return *at;
  }
  std::size_t step() const { return step_; }

 private:
  std::size_t step_;
  std::vector<std::uint32_t> sample_;
};

/// Calls `of` with the magnitude of each element that reaches `least`, in order.
template <typename Of>
void each_reaching(const SparseKernels& kernels, SparseVector x, std::uint32_t least,
                   const Of& of) {
  SparseMarks marks;
  for (std::size_t first = 0; first < x.count; first += kSparseBlock) {
    const std::size_t count = x.block(first);
    if (kernels.mark(marks, x.data + first, count, least) == 0) continue;
    for (std::size_t i = 0; i < count; i += 64)
      for (std::uint64_t word = marks[i / 64]; word != 0; word &= word - 1)
        of(magnitude(x.data, first + i + static_cast<std::size_t>(std::countr_zero(word))));
  }
}

/// The cut at `least`, with as many of the elements that equal it as make `wanted`.
anycclSparseCut_t cut_at(std::uint32_t least, std::size_t above, std::size_t equal,
                         std::size_t wanted) {
  const std::size_t ties = above < wanted ? std::min(equal, wanted - above) : 0;
  return {least, ties, above + ties};
}

}  // namespace

Result<anycclSparseCut_t> sparse_threshold(const SparseKernels& kernels, SparseVector x,
                                           std::size_t keep) {
  if (keep > x.count)
    return error(Code::invalid_argument, "keep is {}, but the vector has {} elements", keep,
                 x.count);
  if (keep == 0) return anycclSparseCut_t{kNothing, 0, 0};
  const std::uint32_t least = Sample(x).reached_by(keep);
  std::size_t above = 0, equal = 0;
  each_reaching(kernels, x, std::max(least, 1U),
                [&](std::uint32_t found) { ++(found == least ? equal : above); });
  // Zeros need not travel: all that is more is taken, and no ties.
  return cut_at(least, above, equal, keep);
}

Result<anycclSparseCut_t> sparse_top_k(const SparseKernels& kernels, SparseVector x,
                                       std::size_t k) {
  if (k > x.count)
    return error(Code::invalid_argument, "k is {}, but the vector has {} elements", k, x.count);
  if (k == 0) return anycclSparseCut_t{kNothing, 0, 0};
  Sample sample(x);
  std::vector<std::uint32_t> found;
  // The sample says which elements may be among them; if they are too few, it was not like the
  // rest.
  std::size_t wanted = k + k / 4 + 16 * sample.step();
  do {
    found.clear();
    const std::uint32_t least = wanted < x.count ? sample.reached_by(wanted) : 0;
    each_reaching(kernels, x, least, [&](std::uint32_t bits) { found.push_back(bits); });
    wanted *= 4;
  } while (found.size() < k);
  const auto at = found.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(found.begin(), at, found.end(), std::greater<>());
  const auto above = static_cast<std::size_t>(
      std::count_if(found.begin(), at, [least = *at](std::uint32_t bits) { return bits > least; }));
  return cut_at(*at, above, k - above, k);
}

}  // namespace anyccl
