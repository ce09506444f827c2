#pragma once
// The arguments of a collective or message go through the framework as a Call. Its key, by which
// its plan is found again, is here, and the tags of the library's own messages.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "platform/transport/call_record.hpp"

namespace anyccl {

/// Tags of the library's own messages have these two bits, those of its users have not.
constexpr std::uint32_t kOwnTag = 0xc0000000;
/// A put or a signal has the first of these tags, the bytes that follow a long put have the second.
/// Other messages of the library have tags far below.
constexpr std::uint32_t kPutTag = 0xfffffffe, kPutBytesTag = 0xffffffff;
/// Messages between the ranks that are left when a communicator is shrunk have this tag.
constexpr std::uint32_t kShrinkTag = kPutTag - 1;

/// The arguments of one operation, as the caller gave them. Counts are in elements: of the vector,
/// or of one block. Made for every call: what is larger than 80 bytes, compilers clear in a loop.
struct Call {
  Collective collective = Collective::all_reduce;
  DType dtype = DType::f32;
  OperatorNumber op = ReduceOp::sum;
  std::uint8_t settings = 0;             ///< Its configuration, as CallSettingsTable has it.
  Rank root{0};                          ///< Send and recv: the peer, or kAnySource.
  std::uint32_t tag = 0;                 ///< Send and recv.
  std::uint16_t threads = 1;             ///< How many of each rank are in such a call at once.
  bool synchronous = false;              ///< Send: complete only when it was matched.
  std::chrono::milliseconds timeout{0};  ///< 0: none.
  std::size_t count = 0;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  /// v-forms: one entry per rank, of each side that is several blocks at this rank; see
  /// has_blocks_apart().
  const std::size_t *send_counts = nullptr, *send_displs = nullptr;
  const std::size_t *recv_counts = nullptr, *recv_displs = nullptr;

  /// At rank `me`; where one side is a block of the other, it lies there as that block.
  bool in_place(Rank me) const {
    switch (collective) {
      case Collective::all_gather:
      case Collective::gather:
        return lies_at(input, output, block_offset(me));
      case Collective::reduce_scatter:
      case Collective::scatter:
        return lies_at(output, input, block_offset(me));
      case Collective::gather_v:
        if (root != me) return false;
        [[fallthrough]];
      case Collective::all_gather_v:
        return recv_displs != nullptr && lies_at(input, output, v_block_offset(recv_displs, me));
      case Collective::scatter_v:
        if (root != me) return false;
        [[fallthrough]];
      case Collective::reduce_scatter_v:
        return send_displs != nullptr && lies_at(output, input, v_block_offset(send_displs, me));
      default:
        return input == output;
    }
  }
  bool is_point_to_point() const {
    return collective == Collective::send || collective == Collective::recv;
  }

 private:
  static bool lies_at(const std::byte* block, const std::byte* whole, std::size_t offset) {
    return whole == nullptr ? block == nullptr && offset == 0 : block == whole + offset;
  }
  std::size_t block_offset(Rank me) const { return uindex(me) * count * bytes_of(dtype); }
  std::size_t v_block_offset(const std::size_t* displs, Rank me) const {
    return displs[uindex(me)] * bytes_of(dtype);
  }
};

inline bool has_collectives(std::span<const Call* const> calls) {
  return std::ranges::any_of(calls, [](const Call* call) { return !call->is_point_to_point(); });
}

static_assert(sizeof(void*) < 8 || sizeof(Call) <= 80);

/// A call whose arrays are its own.
class KeptCall {
 public:
  /// Copies the arrays of `call`, which is one of rank `me` of `size`.
  KeptCall(const Call& call, Rank me, int size);
  const Call& call() const { return call_; }

 private:
  Call call_;
  std::vector<std::size_t> table_;  // moved, its elements stay where they are
};

/// The calls that one call stands for; see FusedCall.
struct FusedParts {
  std::uint32_t number = 0;  ///< 0: it is one call.
  std::uint32_t hash = 0;    ///< The hash of their sizes.
};

/// Everything about a call of rank `me` that its plan depends on, except the arrays of a v-form.
struct CallKey {
  CallKey() = default;
  /// `parts`: of a fused call.
  CallKey(const Call& call, Rank me, FusedParts parts = {})
      : what(static_cast<std::uint64_t>(call.collective) |
             static_cast<std::uint64_t>(call.dtype) << 8 |
             static_cast<std::uint64_t>(call.op) << 16 |
             static_cast<std::uint64_t>(call.settings) << 24 |  // 6 bits
             static_cast<std::uint64_t>(call.in_place(me)) << 30 |
             static_cast<std::uint64_t>(parts.number > 0) << 31 |
             static_cast<std::uint64_t>(uindex(call.root)) << 32),
        count(call.count | std::uint64_t{parts.hash} << 32) {}
  bool operator==(const CallKey&) const = default;

  std::uint64_t what = ~std::uint64_t{0};  // no call's
  std::size_t count = 0;
};

/// Whether [a, a + a_bytes) and [b, b + b_bytes) have bytes in common.
inline bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
                    std::size_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

/// "all_reduce of 1024 f32, sum" or "broadcast of 3 i64 from rank 2".
std::string describe(const CallRecord& call);

}  // namespace anyccl
