#include "strided_copy.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace anyccl::bindings {
namespace {

struct Dimension {
  std::int64_t extent;
  std::int64_t from, to;  // bytes from one element to the next, here and there
};

/// Returns the dimensions from the last one on. Those of one element are left out, and neighbours
/// that are one sequence are joined.
std::vector<Dimension> joined_dimensions(std::span<const std::int64_t> shape,
                                         std::span<const std::int64_t> strides, std::int64_t item) {
  std::vector<Dimension> all;  // from the last one on
  std::int64_t to = item;
  for (std::size_t d = shape.size(); d-- > 0; to *= shape[d]) {
    if (shape[d] == 1) continue;
    if (!all.empty() && strides[d] == all.back().from * all.back().extent)
      all.back().extent *= shape[d];
    else
      all.push_back({shape[d], strides[d], to});
  }
  return all;
}

/// `step`: bytes from one element to the next, here; there they are neighbours.
template <std::size_t kItem>
void copy_line(const std::byte* from, std::int64_t step, std::int64_t count, std::byte* to) {
  const auto copy = [=](std::int64_t distance) {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * std::int64_t{kItem}, from + i * distance, kItem);
  };
  constexpr std::int64_t kTwo = 2 * kItem;
  step == kTwo ? copy(kTwo) : copy(step);  // the first one by vectors
}

/// In tiles, so that lines of the cache are read, and written, once. `near`: neighbours here;
/// `line`: neighbours there.
template <std::size_t kItem>
void transpose(const std::byte* from, const Dimension& near, const Dimension& line, std::byte* to) {
  constexpr std::int64_t kTile = std::max<std::int64_t>(8, 64 / kItem);
  for (std::int64_t l = 0; l < line.extent; l += kTile)
    for (std::int64_t n = 0; n < near.extent; n += kTile)
      for (std::int64_t i = n; i < std::min(near.extent, n + kTile); ++i)
        copy_line<kItem>(from + i * near.from + l * line.from, line.from,
                         std::min(kTile, line.extent - l), to + i * near.to + l * line.to);
}

/// `outer` dimensions around a body(from, to).
template <typename Body>
void for_each(std::span<const Dimension> outer, const std::byte* from, std::byte* to,
              const Body& body) {
  if (outer.empty()) return body(from, to);
  const Dimension& d = outer.back();
  for (std::int64_t i = 0; i < d.extent; ++i)
    for_each(outer.first(outer.size() - 1), from + i * d.from, to + i * d.to, body);
}

template <std::size_t kItem>
void copy_items(std::vector<Dimension> all, const std::byte* from, std::byte* to) {
  const Dimension line = all.front();
  const auto distance = [](const Dimension& d) { return std::abs(d.from); };
  const auto near = std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return distance(a) < distance(b);
  });
  if (near == all.begin()) {
    for_each(std::span(all).subspan(1), from, to, [&](const std::byte* f, std::byte* t) {
      copy_line<kItem>(f, line.from, line.extent, t);
    });
    return;
  }
  const Dimension other = *near;
  all.erase(near);
  for_each(std::span(all).subspan(1), from, to,
           [&](const std::byte* f, std::byte* t) { transpose<kItem>(f, other, line, t); });
}

void copy_runs(std::span<const Dimension> outer, std::size_t bytes, const std::byte* from,
               std::byte* to) {
  for_each(outer, from, to,
           [bytes](const std::byte* f, std::byte* t) { std::memcpy(t, f, bytes); });
}

}  // namespace

void copy_strided(const std::byte* from, std::span<const std::int64_t> shape,
                  std::span<const std::int64_t> strides, std::size_t item, std::byte* to) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  std::vector<Dimension> all = joined_dimensions(shape, strides, static_cast<std::int64_t>(item));
  if (all.empty()) {
    std::memcpy(to, from, item);
    return;
  }
  if (all.front().from == static_cast<std::int64_t>(item))
    return copy_runs(std::span(all).subspan(1), static_cast<std::size_t>(all.front().extent) * item,
                     from, to);
  switch (item) {
    case 1:
      return copy_items<1>(std::move(all), from, to);
    case 2:
      return copy_items<2>(std::move(all), from, to);
    case 4:
      return copy_items<4>(std::move(all), from, to);
    case 8:
      return copy_items<8>(std::move(all), from, to);
    case 16:
      return copy_items<16>(std::move(all), from, to);
    default:
      copy_runs(all, item, from, to);
  }
}

}  // namespace anyccl::bindings
