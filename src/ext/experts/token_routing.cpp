#include "ext/experts/token_routing.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace anyccl {
namespace {

Status check(const TokenRouting::Wanted& wanted, int ranks) {
  if (wanted.choices < 1)
    return error(Code::invalid_argument, "choices is {}: a token goes to 1 expert or more",
                 wanted.choices);
  if (wanted.experts < 1 || wanted.experts % ranks != 0)
    return error(Code::invalid_argument, "nexperts is {}, which is no multiple of {} ranks",
                 wanted.experts, ranks);
  if (wanted.padded && wanted.capacity == 0)
    return error(Code::invalid_argument, "capacity is 0, but rows are padded to it");
  return {};
}

/// Where each begins, one after the other.
std::vector<std::size_t> begins_of(const std::vector<std::size_t>& counts) {
  std::vector<std::size_t> first(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), first.begin(), std::size_t{0});
  return first;
}

}  // namespace

Result<TokenRouting> TokenRouting::make(const Wanted& wanted, std::span<const int> expert_of,
                                        int ranks) {
  ANYCCL_CHECK(check(wanted, ranks));
  TokenRouting routing(wanted, ranks);
  routing.sent_.resize(static_cast<std::size_t>(wanted.experts));
  routing.place_of_.assign(expert_of.size(), kDropped);
  const auto choices = static_cast<std::size_t>(wanted.choices);
  for (std::size_t i = 0; i < expert_of.size(); ++i) {
    if (expert_of[i] < -1 || expert_of[i] >= wanted.experts)
      return error(Code::invalid_argument, "choice {} of token {} is expert {} of {}", i % choices,
                   i / choices, expert_of[i], wanted.experts);
    if (expert_of[i] < 0) continue;
    std::size_t& rows = routing.sent_[static_cast<std::size_t>(expert_of[i])];
    if (wanted.capacity > 0 && rows == wanted.capacity)
      ++routing.dropped_;
    else
      routing.place_of_[i] = rows++;  // among those of its expert
  }
  const std::vector<std::size_t> first = begins_of(routing.sent_);
  for (std::size_t i = 0; i < expert_of.size(); ++i)
    if (routing.place_of_[i] != kDropped)
      routing.place_of_[i] += first[static_cast<std::size_t>(expert_of[i])];
  return routing;
}

Status TokenRouting::set_received(std::span<const std::size_t> counts) {
  const std::size_t most = wanted_.padded ? wanted_.capacity : kMostRows;
  const auto wrong =
      std::find_if(counts.begin(), counts.end(), [&](std::size_t count) { return count > most; });
  if (wrong != counts.end())
    return error(
        Code::invalid_usage,
        "rank {} sends {} rows for one expert, which may have {}: capacity must be the same on "
        "all ranks",
        (wrong - counts.begin()) / local_experts(), *wrong, most);
  received_.assign(counts.begin(), counts.end());
  return {};
}

std::vector<std::size_t> TokenRouting::sent_to() const {
  std::vector<std::size_t> rows(static_cast<std::size_t>(ranks_));
  for (std::size_t e = 0; e < sent_.size(); ++e)
    rows[e / static_cast<std::size_t>(local_experts())] += sent_[e];
  return rows;
}

std::vector<std::size_t> TokenRouting::received_from() const {
  std::vector<std::size_t> rows(static_cast<std::size_t>(ranks_));
  for (std::size_t i = 0; i < received_.size(); ++i)
    rows[i / static_cast<std::size_t>(local_experts())] += received_[i];
  return rows;
}

std::vector<TokenRouting::Block> TokenRouting::blocks() const {
  const auto experts = static_cast<std::size_t>(local_experts()),
             ranks = static_cast<std::size_t>(ranks_);
  const std::vector<std::size_t> arrives = begins_of(received_);
  std::vector<Block> blocks;
  std::size_t next = 0;
  for (std::size_t e = 0; e < experts; ++e)
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::size_t i = r * experts + e;
      blocks.push_back({arrives[i], next, received_[i]});
      next += wanted_.padded ? wanted_.capacity : received_[i];
    }
  return blocks;
}

std::size_t TokenRouting::rows() const {
  if (wanted_.padded)
    return static_cast<std::size_t>(local_experts()) * static_cast<std::size_t>(ranks_) *
           wanted_.capacity;
  return std::accumulate(received_.begin(), received_.end(), std::size_t{0});
}

std::vector<std::size_t> TokenRouting::rows_of_experts() const {
  std::vector<std::size_t> rows(static_cast<std::size_t>(local_experts()));
  for (std::size_t i = 0; i < received_.size(); ++i) rows[i % rows.size()] += received_[i];
  return rows;
}

}  // namespace anyccl
