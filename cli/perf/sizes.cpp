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
  for (std::size_t size = range.first;;) {
    sizes.push_back(size);
    // The next size may be too large for a number, so it is compared before it is computed.
    const bool is_last =
        range.step > 0 ? range.step > range.last - size : range.factor > range.last / size;
    if (is_last) return sizes;
    size = range.step > 0 ? size + range.step : size * range.factor;
  }
}

}  // namespace anyccl::cli
