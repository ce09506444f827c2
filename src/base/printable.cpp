#include "base/printable.hpp"

#include <algorithm>

namespace anyccl {
namespace {

/// Leads of UTF-8 characters, how many bytes these have, and between which the second one lies: not
/// those of control characters, and of no character that has a shorter form or does not exist.
struct Lead {
  unsigned char first, last;
  std::size_t bytes;
  unsigned char least, most;
};
constexpr Lead kLeads[] = {
    {0x20, 0x7e, 1, 0, 0},       {0xc2, 0xc2, 2, 0xa0, 0xbf}, {0xc3, 0xdf, 2, 0x80, 0xbf},
    {0xe0, 0xe0, 3, 0xa0, 0xbf}, {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f},
    {0xee, 0xef, 3, 0x80, 0xbf}, {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf},
    {0xf4, 0xf4, 4, 0x80, 0x8f},
};

/// How long the character is with which `text` begins; 0: it cannot be shown.
std::size_t bytes_of_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto* const lead = std::find_if(std::begin(kLeads), std::end(kLeads), [&](const Lead& one) {
    return byte(0) >= one.first && byte(0) <= one.last;
  });
  if (lead == std::end(kLeads) || lead->bytes > text.size()) return 0;
  for (std::size_t i = 1; i < lead->bytes; ++i) {
    const bool second = i == 1;
    if (byte(i) < (second ? lead->least : 0x80) || byte(i) > (second ? lead->most : 0xbf)) return 0;
  }
  return lead->bytes;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = bytes_of_character(text);
    if (bytes == 0)
      shown += '?';
    else
      shown += text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(1, bytes));
  }
  return shown;
}

}  // namespace anyccl
