#include "base/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace anyccl {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  constexpr std::uint32_t kReversedPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)
#define ANYCCL_CRC_TARGET __attribute__((target("sse4.2")))
bool has_instruction() {
  return __builtin_cpu_supports("sse4.2");
}
ANYCCL_CRC_TARGET std::uint32_t add_word(std::uint32_t crc, std::uint64_t word) {
  return static_cast<std::uint32_t>(_mm_crc32_u64(crc, word));
}
ANYCCL_CRC_TARGET std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) {
  return _mm_crc32_u8(crc, byte);
}
#elif defined(__aarch64__)
#define ANYCCL_CRC_TARGET __attribute__((target("+crc")))
bool has_instruction() {
  return (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}
ANYCCL_CRC_TARGET std::uint32_t add_word(std::uint32_t crc, std::uint64_t word) {
  return __crc32cd(crc, word);
}
ANYCCL_CRC_TARGET std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) {
  return __crc32cb(crc, byte);
}
#endif

#if defined(ANYCCL_CRC_TARGET)
ANYCCL_CRC_TARGET std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes,
                                                      std::uint32_t before) {
  std::uint32_t crc = ~before;
  std::size_t i = 0;
  for (; i + sizeof(std::uint64_t) <= bytes.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    crc = add_word(crc, word);
  }
  for (; i < bytes.size(); ++i) crc = add_byte(crc, static_cast<std::uint8_t>(bytes[i]));
  return ~crc;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (const std::byte byte : bytes)
    crc = crc >> 8 ^ kTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF];
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(ANYCCL_CRC_TARGET)
  static const bool fast = has_instruction();
  if (fast) return crc32c_by_instruction(bytes, before);
#endif
  return crc32c_by_table(bytes, before);
}

}  // namespace anyccl
