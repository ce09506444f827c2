// Recursive multiplying with two radices: everyone in a group publishes its input and sums the
// group's; then everyone sums one copy of each group's sum, in the order of the groups. Ruefenacht,
// Bull and Booth, "Generalisation of recursive doubling for AllReduce: now with simulation",
// Parallel Computing 69, 2017. Two rounds and two roundings, and with groups of about sqrt(n) each
// rank reads 2 (sqrt(n) - 1) vectors, where one_shot reads n - 1: it suits small messages of many
// ranks. Groups are ranks that are near each other, if the shape says so, and may be uneven: a rank
// without a counterpart in a group reads from another of its members. Else they have a power of two
// of ranks, but for the last, which may have fewer, so that both sums together are the aligned
// tree.

#include <bit>

#include "algorithm/catalog/aligned_tree.hpp"

namespace anyccl {
namespace {

/// Runs of ranks, about as many as each has members; the last one may have fewer.
std::vector<PeerList> runs_of_ranks(int n) {
  const int size = 1 << (std::bit_width(static_cast<unsigned>(n)) / 2);
  std::vector<PeerList> groups;
  for (int r = 0; r < n; ++r) {
    if (r % size == 0) groups.emplace_back();
    groups.back().push_back(Rank{r});
  }
  return groups;
}

Order order(const Shape& s) {
  return has_groups(s) ? tree_of_aligned_hosts(s) : Order::tree;
}

Schedule build(const Shape& s, Rank me) {
  const std::vector<PeerList> groups = has_groups(s) ? ranks_by_host(s) : runs_of_ranks(s.size);
  const PeerList& home = list_with(groups, me);
  const auto place_in = [](const PeerList& group, Rank r) {
    return static_cast<std::uint32_t>(std::find(group.begin(), group.end(), r) - group.begin());
  };

  Builder b(s, me, 1);
  Slice mine{Space::input};
  if (s.in_place) {  // peers read it to the end
    mine = b.scratch(0);
    b.copy({Space::input}, mine);
  }
  Slice sum = mine;
  if (home.size() > 1) {
    sum = b.scratch(1);
    b.send(home, mine);
    b.recv_reduce(home, mine, sum);
  }

  PeerList sources, readers;
  for (const PeerList& group : groups) {
    sources.push_back(&group == &home ? me : leader(group, place_in(home, me)));
    for (const Rank r : group)
      if (&group != &home && leader(home, place_in(group, r)) == me) readers.push_back(r);
  }
  b.send(readers, sum);
  b.recv_reduce(sources, sum, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_recursive_multiplying = {
    "recursive_multiplying", Collective::all_reduce, any_shape, nullptr, build, order};

}  // namespace anyccl
