#pragma once

#include <cstddef>
#include <string>

#include "base/types.hpp"
#include "platform/transport.hpp"

namespace anyccl {

/// The arguments of one operation, as the caller gave them. Counts are in elements.
struct Call {
  Collective collective = Collective::all_reduce;
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  Rank root{0};  ///< Send and recv: the peer.
  std::size_t count = 0;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  /// all_to_all_v: one entry per rank.
  const std::size_t *send_counts = nullptr, *send_displs = nullptr;
  const std::size_t *recv_counts = nullptr, *recv_displs = nullptr;

  bool in_place() const { return input == output; }
  bool is_point_to_point() const {
    return collective == Collective::send || collective == Collective::recv;
  }
};

/// Everything about a call that its plan depends on, except the arrays of a v-form.
struct CallKey {
  CallKey() = default;
  explicit CallKey(const Call& call)
      : what(static_cast<std::uint64_t>(call.collective) |
             static_cast<std::uint64_t>(call.dtype) << 8 |
             static_cast<std::uint64_t>(call.op) << 16 |
             static_cast<std::uint64_t>(call.in_place()) << 24 |
             static_cast<std::uint64_t>(uindex(call.root)) << 32),
        count(call.count) {}
  bool operator==(const CallKey&) const = default;

  std::uint64_t what = ~std::uint64_t{0};  // no call's
  std::size_t count = 0;
};

/// Whether [a, a + bytes) and [b, b + bytes) overlap without being the same.
inline bool overlap(const std::byte* a, const std::byte* b, std::size_t bytes) {
  return a != b && bytes > 0 && a < b + bytes && b < a + bytes;
}

/// "all_reduce of 1024 f32, sum" or "broadcast of 3 i64 from rank 2".
std::string describe(const CallRecord& call);

}  // namespace anyccl
