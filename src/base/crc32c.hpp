#pragma once
// Links seal their frames with CRC-32C if ANYCCL_CHECKSUM is set (platform/link/seal.hpp).

#include <cstddef>
#include <cstdint>
#include <span>

namespace anyccl {

/// CRC-32C (Castagnoli) of what `before` is the CRC of, followed by `bytes`; 0: of nothing.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// Does what crc32c() does without the CPU's instruction, for CPUs that have none.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace anyccl
