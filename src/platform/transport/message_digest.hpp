#pragma once
// The 40 bits of a message that say which tag and data type it has, whether it is synchronous or
// the answer to a synchronous one, and whether its data goes another way.

#include <cstddef>
#include <cstdint>

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"

namespace anyccl::message_digest {

inline constexpr std::uint64_t kInQueues = 0x80, kSynchronous = 0x40, kTypes = 0x3f;
inline constexpr int kBits = 40;
static_assert(anycclNumTypes < kTypes);

constexpr std::uint64_t of(std::uint32_t tag, DType dtype) {
  return std::uint64_t{tag} << 8 | static_cast<std::uint64_t>(dtype);
}
constexpr std::uint64_t synchronous(std::uint64_t digest) {
  return digest | kSynchronous;
}
/// Its data goes through queues of devices.
constexpr std::uint64_t in_queues(std::uint64_t digest) {
  return digest | kInQueues;
}
constexpr bool is_in_queues(std::uint64_t digest) {
  return (digest & kInQueues) != 0;
}
constexpr std::uint32_t tag_of(std::uint64_t digest) {
  return static_cast<std::uint32_t>(digest >> 8);
}
constexpr DType dtype_of(std::uint64_t digest) {
  return static_cast<DType>(digest & kTypes);
}
constexpr bool is_synchronous(std::uint64_t digest) {
  return (digest & kSynchronous) != 0;
}

/// That of the message without contents that answers a synchronous message `number`.
constexpr std::uint64_t answer(std::uint64_t number) {
  return of(static_cast<std::uint32_t>(number), DType{kTypes});
}
constexpr bool is_answer(std::uint64_t digest) {
  return (digest & kTypes) == kTypes;
}
constexpr bool is_plain(std::uint64_t digest) {
  return !is_synchronous(digest) && !is_answer(digest);
}

/// One side's message: its digest and its bytes.
struct Side {
  int rank;
  std::uint64_t digest;
  std::uint64_t bytes;
};
/// The error of two sides whose digests differ: it names both ranks, types and numbers of elements.
Status other_type(const Side& sender, const Side& receiver);

}  // namespace anyccl::message_digest
