#include "rank_range.hpp"

#include <charconv>

#include "base/error.hpp"

namespace anyccl::cli {

Result<RankRange> parse_ranks(std::string_view text) {
  RankRange range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  std::from_chars_result last{first.ptr, first.ec};
  range.last = range.first;
  const std::string_view rest(first.ptr, static_cast<std::size_t>(end - first.ptr));
  if (first.ec == std::errc{} && rest.starts_with(".."))
    last = std::from_chars(first.ptr + 2, end, range.last);
  if (last.ec != std::errc{} || last.ptr != end || range.first < 1 || range.last < range.first)
    return error(Code::invalid_argument,
                 "'{}' is not a number or range of ranks such as 8 or 2..65", text);
  return range;
}

}  // namespace anyccl::cli
