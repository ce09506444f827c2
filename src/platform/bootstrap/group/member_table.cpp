#include "platform/bootstrap/group/member_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace anyccl::bootstrap {
namespace {

std::string version_text(std::uint32_t code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

Status check_same_group(const Hello& first, const Hello& hello) {
  if (hello.size != first.size)
    return error(Code::invalid_usage, "{} is for a group of {} ranks, {} for one of {}",
                 describe(first), first.size, describe(hello), hello.size);
  if (hello.library != first.library)
    return error(Code::invalid_usage, "{} runs anyccl {}, {} runs {}: use one version everywhere",
                 describe(first), version_text(first.library), describe(hello),
                 version_text(hello.library));
  return compare_settings(first, hello);
}

}  // namespace

Status MemberTable::add(const Hello& hello) {
  ANYCCL_CHECK(check_hello(hello));
  if (!first_) {
    first_ = hello;
    members_.resize(hello.size);
  }
  ANYCCL_CHECK(check_same_group(*first_, hello));
  std::optional<Hello>& seat = members_[hello.rank];
  if (seat)
    return error(Code::invalid_usage, "rank {} joined twice: from {} and from {}", hello.rank,
                 whereabouts(*seat), whereabouts(hello));
  seat = hello;
  ++joined_;
  return {};
}

Status MemberTable::incomplete_error(double seconds) const {
  std::vector<std::size_t> missing;
  for (std::size_t r = 0; r < members_.size(); ++r)
    if (!members_[r]) missing.push_back(r);
  return error(Code::timeout, "{} of {} ranks joined within {:.3g} s; missing: {}", joined_,
               members_.size(), std::round(10 * seconds) / 10, list_ranks(missing));
}

std::vector<Hello> MemberTable::hellos() const {
  std::vector<Hello> table;
  for (const std::optional<Hello>& member : members_) table.push_back(*member);
  return table;
}

std::string list_ranks(const std::vector<std::size_t>& ranks) {
  constexpr std::size_t kMost = 16;
  const std::size_t shown = std::min(ranks.size(), kMost);
  std::string text = fmt::format(
      "{}", fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < ranks.size()) text += fmt::format(" and {} more", ranks.size() - shown);
  return text;
}

}  // namespace anyccl::bootstrap
