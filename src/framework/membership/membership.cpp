#include "framework/membership/membership.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"

namespace anyccl {

std::uint32_t slots_for(int size) {
  return std::max(16U, std::bit_ceil(2 * static_cast<std::uint32_t>(size)));
}

std::size_t line_bytes_for(int size) {
  // Longer publications are faster through the ring, whose lines no peer has read lately: measured.
  constexpr std::size_t kMostLines = 32, kLine = 64;
  const std::size_t lines = kMostLines * slots_for(2) / slots_for(size);  // as much in all slots
  return std::max<std::size_t>(lines, 1) * kLine + kLineBytes;
}

std::size_t ring_bytes_for(int size, bool network) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  if (network) return 4 * kMiB;
  return size <= 2 ? 2 * kMiB : kMiB;  // measured: ADR 0023
}

std::size_t least_ring_bytes(int size) {
  constexpr std::size_t kLeast = std::size_t{64} << 10, kOfEach = std::size_t{12} << 10;
  return std::clamp(static_cast<std::size_t>(size) * kOfEach, kLeast, ring_bytes_for(size, false));
}

Status aborted_by(const Membership& me) {
  return error(Code::aborted, "{} aborted the communicator", me.names[uindex(me.rank)]);
}

}  // namespace anyccl
