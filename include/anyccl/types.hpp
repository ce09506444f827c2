#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "anyccl/anyccl.h"

namespace anyccl {

/// A place in a communicator, in [0, size). Not a process, a node, a GPU or a local index.
enum class Rank : std::int32_t {};
inline constexpr Rank kAnySource{ANYCCL_ANY_SOURCE};
inline constexpr Rank kNoRank{ANYCCL_NO_RANK};  ///< Beyond the edge of a grid.
constexpr int index(Rank r) {
  return static_cast<int>(r);
}
constexpr std::uint32_t uindex(Rank r) {
  return static_cast<std::uint32_t>(r);
}

/// Element types; the values are those of anycclDataType_t.
enum class DType : std::uint8_t {
  i8 = 0,
  u8 = 1,
  i32 = 2,
  u32 = 3,
  i64 = 4,
  u64 = 5,
  f16 = 6,
  f32 = 7,
  f64 = 8,
  bf16 = 9,
  f8e4m3 = 10,
  f8e5m2 = 11,
  i16 = 12,
  u16 = 13,
  boolean = 14,  ///< One byte.
  complex64 = 15,
  complex128 = 16,
};

namespace detail {
inline constexpr std::string_view kTypeNames[] = {  // by DType
    "i8",   "u8",     "i32",    "u32", "i64", "u64",  "f16",       "f32",       "f64",
    "bf16", "f8e4m3", "f8e5m2", "i16", "u16", "bool", "complex64", "complex128"};
}  // namespace detail

/// Gives "f32", as messages have it; "?" if there is no such type.
constexpr std::string_view name_of(DType type) {
  const auto i = static_cast<std::size_t>(type);
  return i < std::size(detail::kTypeNames) ? detail::kTypeNames[i] : "?";
}

/// Ranks of the largest communicator.
inline constexpr int kLargestGroup = 65536;

/// Reductions; the values are those of anycclRedOp_t, also of operators that programs create.
enum class ReduceOp : std::int32_t {
  sum = 0,
  prod = 1,
  max = 2,
  min = 3,
  avg = 4,
  land = 5,
  lor = 6,
  lxor = 7,
  band = 8,
  bor = 9,
  bxor = 10,
};

/// What is communicated. The values are those of anycclCollective_t: append only.
enum class Collective : std::uint8_t {
  all_reduce = 0,
  broadcast = 1,
  all_to_all_v = 2,
  barrier = 3,
  send = 4,
  recv = 5,
  reduce = 6,
  reduce_scatter = 7,
  all_gather = 8,
  gather = 9,
  scatter = 10,
  all_to_all = 11,
  all_gather_v = 12,
  reduce_scatter_v = 13,
  gather_v = 14,
  scatter_v = 15,
  scan = 16,
  exscan = 17,
};

namespace detail {

/// A communicator's handle, which one thread may take away while others are in calls with it.
class CommHandle {
 public:
  CommHandle(anycclComm_t handle = nullptr) : handle_(handle) {}
  CommHandle(const CommHandle& other) : handle_(static_cast<anycclComm_t>(other)) {}
  CommHandle& operator=(const CommHandle& other) {
    std::atomic_ref(handle_).store(other);
    return *this;
  }
  operator anycclComm_t() const { return std::atomic_ref(handle_).load(std::memory_order_acquire); }
  anycclComm_t take() { return std::atomic_ref(handle_).exchange(nullptr); }
  /// Where a call that creates a communicator puts its handle, perhaps at the end of a group.
  anycclComm_t* place() { return &handle_; }

 private:
  mutable anycclComm_t handle_;
};

}  // namespace detail
}  // namespace anyccl
