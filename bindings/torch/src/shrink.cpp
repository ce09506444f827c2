// Groups of fewer ranks: without some that leave, and of those that are left after a failure.

#include "backend.hpp"
#include "errors.hpp"

namespace anyccl::torch {
namespace {

/// NCCL's, which torch.distributed.shrink_group passes on.
constexpr int kAbort = 1;
/// How long a communicator in which nothing was called takes to leave, at most.
constexpr std::chrono::seconds kTimeToLeave{1};

std::string text_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

/// The ranks of a group of `size` that are not in `ranks`.
std::vector<int> ranks_not_in(int size, const std::vector<int>& ranks) {
  std::vector<int> left;
  for (int rank = 0; rank < size; ++rank)
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) left.push_back(rank);
  return left;
}

}  // namespace

c10::intrusive_ptr<Backend::Options> Backend::options_for(
    const std::vector<int>& ranks, const c10::intrusive_ptr<c10d::Backend::Options>& given) const {
  auto options = inherited_options(given);
  for (const int rank : ranks) {
    const auto index = static_cast<std::size_t>(rank);
    const auto& global = options_->global_ranks_in_group;
    options->global_ranks_in_group.push_back(index < global.size() ? global[index] : index);
  }
  return options;
}

c10::intrusive_ptr<Backend::Options> Backend::inherited_options(
    const c10::intrusive_ptr<c10d::Backend::Options>& given) const {
  auto options = c10::make_intrusive<Options>(given ? given->timeout : options_->timeout);
  options->profiled_as = options_->profiled_as;
  options->numbers = options_->numbers;
  if (given) options->group_name = given->group_name;
  if (const auto* const own = dynamic_cast<const Options*>(given.get()); own != nullptr)
    options->numbers = own->numbers.or_else(options_->numbers);
  return options;
}

/// Over a communicator of `ranks`, in this order.
c10::intrusive_ptr<Backend> Backend::backend_over(
    std::shared_ptr<SharedComm> made, const std::vector<int>& ranks,
    const c10::intrusive_ptr<c10d::Backend::Options>& given) const {
  const auto place = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
  JoinedGroup group{std::move(made),
                    core_->group.round + " without " + text_of(ranks_not_in(size_, ranks))};
  return c10::make_intrusive<Backend>(std::move(group), store_, static_cast<int>(place),
                                      static_cast<int>(ranks.size()), options_for(ranks, given));
}

c10::intrusive_ptr<c10d::Backend> Backend::shrink(
    const std::vector<std::int64_t>& ranks_to_exclude, int shrink_flags,
    const c10::intrusive_ptr<c10d::Backend::Options>& opts_override) {
  const std::vector<int> excluded(ranks_to_exclude.begin(), ranks_to_exclude.end());
  const bool after_failure = shrink_flags == kAbort;
  auto made = comm().shrink(excluded, after_failure, inherited_options(opts_override)->numbers);
  const std::vector<int> expected = ranks_not_in(size_, excluded);
  // Others that have died, or that other ranks have in their lists: torch would count them.
  if (after_failure && comm().survivors(size_) != expected) {
    made->close(Clock::now() +
                kTimeToLeave);  // an abort would reach ranks that are still making it
    throw_backend_error("anyccl: shrink_group: rank " +
                        text_of(ranks_not_in(size_, comm().survivors(size_))) +
                        " of the group is gone, and not only " + text_of(excluded) +
                        ": call it again on all others with all of these, or "
                        "anyccl.torch.carry_on(group), which finds them");
  }
  return backend_over(std::move(made), expected, opts_override);
}

Backend::LeftOver Backend::carry_on(const std::vector<int>& excluded) {
  auto made = comm().shrink(excluded, true, options_->numbers);
  const std::vector<int> left = comm().survivors(size_);
  return {backend_over(std::move(made), left, nullptr), ranks_not_in(size_, left)};
}

}  // namespace anyccl::torch
