#pragma once
// PlanCache marks publications with the digest of their call: no rank reads those of another one.

#include <cstdint>
#include <cstring>

#include "base/hash.hpp"
#include "platform/transport/call_record.hpp"

namespace anyccl {

inline std::uint32_t digest_of(const CallRecord& record) {
  std::uint64_t head = 0;
  std::memcpy(&head, &record.collective, sizeof head);
  const std::uint64_t h = mix(mix(mix(1, head), record.count), record.plan);
  return static_cast<std::uint32_t>(h ^ h >> 32);
}

}  // namespace anyccl
