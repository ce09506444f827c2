#include "base/byte_size.hpp"

#include <charconv>

#include "base/error.hpp"

namespace anyccl {
namespace {

/// The power of two that a suffix stands for; -1: no such suffix.
int shift_of(std::string_view suffix) {
  if (suffix.empty()) return 0;
  if (suffix == "K" || suffix == "k") return 10;
  if (suffix == "M" || suffix == "m") return 20;
  if (suffix == "G" || suffix == "g") return 30;
  return -1;
}

}  // namespace

Result<std::size_t> parse_size(std::string_view text) {
  constexpr std::size_t kMost = std::size_t{1} << 46;
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  const int shift = shift_of({rest, static_cast<std::size_t>(end - rest)});
  if (problem != std::errc{} || shift < 0)
    return error(Code::invalid_argument, "'{}' is not a size such as 8, 4K, 1M or 2G", text);
  if (number > kMost >> shift)
    return error(Code::invalid_argument, "{} is larger than any memory", text);
  return number << shift;
}

}  // namespace anyccl
