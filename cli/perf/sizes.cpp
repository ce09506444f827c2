#include "perf/sizes.hpp"

#include "base/error.hpp"

namespace anyccl::cli {
Result<std::vector<std::size_t>> sizes_in(const SizeRange& range) {
  if (range.first == 0)
    return error(Code::invalid_argument, "the smallest size must be at least 1");
  if (range.first > range.last)
    return error(Code::invalid_argument, "the smallest size, {}, is above the largest, {}",
                 range.first, range.last);
  if (range.step == 0 && range.factor < 2)
    return error(Code::invalid_argument, "the factor between sizes is {}; it must be at least 2",
                 range.factor);
  std::vector<std::size_t> sizes;
  for (std::size_t size = range.first; size <= range.last;) {
    sizes.push_back(size);
    size = range.step > 0 ? size + range.step : size * range.factor;
  }
  return sizes;
}

}  // namespace anyccl::cli
