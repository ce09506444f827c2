#include "platform/link/seal.hpp"

#include <cstddef>
#include <span>

#include "base/crc32c.hpp"

namespace anyccl::link {
namespace {

std::uint32_t header_crc(const SealedHeader& sealed) {
  constexpr std::size_t kBefore = sizeof sealed - sizeof sealed.seal.header;
  return crc32c(std::as_bytes(std::span(&sealed, 1)).first(kBefore));
}

}  // namespace

SealedHeader sealed(const FrameHeader& header, std::uint64_t number, const std::byte* payload) {
  SealedHeader result{header, {number, crc32c({payload, header.bytes}), 0}};
  result.seal.header = header_crc(result);
  return result;
}

const char* problem_of(const SealedHeader& sealed, std::uint64_t expected) {
  if (header_crc(sealed) != sealed.seal.header) return kDamaged;
  if (sealed.seal.number < expected) return "a frame twice";
  return sealed.seal.number > expected ? "a frame behind one that is missing" : nullptr;
}

bool fits(const Seal& seal, const std::byte* payload, std::size_t bytes) {
  return crc32c({payload, bytes}) == seal.payload;
}

}  // namespace anyccl::link
