#pragma once
// A call record says which collective a rank has called, and with which parameters. Ranks compare
// their records to find out why calls do not fit together. Sockets carry the 40 bytes of a record
// in a frame (platform/link/frame.hpp), and the shm transport shows its fields in shared memory.

#include <cstdint>

namespace anyccl {

/// The call of one rank: compared between ranks before data is believed. 40 bytes, sent as it is.
struct CallRecord {
  std::uint64_t sequence = 0;  ///< Number of the operation in its communicator, from 1.
  std::uint8_t collective = 0, dtype = 0, op = 0;
  std::uint8_t parts = 0;  ///< Calls of a group that it stands for, at most 255; 0: it is one call.
  std::int32_t root = 0;
  std::uint64_t count = 0;  ///< Elements; 0 for v-forms, whose pairs are compared at the receiver.
  std::uint64_t plan = 0;   ///< Identity of the plan: algorithm, protocol, tile, sizes of parts.
  std::uint64_t history = 0;  ///< Digest of all calls before this one.
  bool operator==(const CallRecord&) const = default;
};
static_assert(sizeof(CallRecord) == 40);

/// How many calls back a peer's record can still be asked for.
inline constexpr std::uint32_t kCallHistory = 8;

}  // namespace anyccl
