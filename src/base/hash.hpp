#pragma once
// Ranks compare hashes of their calls, settings and tables, and the machine's table has one in its
// name: a hash is the same in every process and on every host.

#include <cstdint>
#include <string_view>

namespace anyccl {

/// FNV-1a: differs where the text does, and is the same on every host.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

/// Adds `value` to what `hash` stands for.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ hash >> 29;
}

}  // namespace anyccl
