// BCube: ranks are numbers of a few digits; for each digit, those who differ in no other one
// scatter their sums over each other, then they gather in the opposite order. Guo et al., "BCube: a
// high performance, server-centric network architecture for modular data centers", SIGCOMM 2009, as
// in Gloo. Least traffic; between halving-doubling (all digits 2) and two-shot (one digit) in
// rounds, in peers at a time and in roundings. For all n that are products.

#include <vector>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

// The base of each digit: 4 where n allows (but 4 is 2 times 2), else the primes of n.
std::vector<std::uint32_t> digit_bases(int n) {
  std::vector<std::uint32_t> bases;
  for (auto left = static_cast<std::uint32_t>(n); left > 1; left /= bases.back()) {
    std::uint32_t base = 2;
    while (left % base != 0) ++base;
    bases.push_back(left % 4 == 0 && n > 4 ? 4 : base);
  }
  return bases;
}

bool supports(const Shape& s) {
  return digit_bases(s.size).size() > 1;
}

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  const auto digits = static_cast<std::uint32_t>(digit_bases(s.size).size());
  return {2 * digits, 2 * (n - 1), n, digits};
}

struct Group {  // those who differ from me in one digit at most, and what they share
  PeerList ranks;
  std::uint32_t first, mine, count;  // blocks: of the group, of this rank, of each
};

Schedule build(const Shape& s, Rank me) {
  std::vector<Group> groups;
  auto blocks = static_cast<std::uint32_t>(s.size);
  for (std::uint32_t base : digit_bases(s.size)) {
    const std::uint32_t first = uindex(me) / blocks * blocks, count = blocks / base;
    const std::uint32_t digit = uindex(me) % blocks / count, lowest = uindex(me) - digit * count;
    Group group{{}, first, first + digit * count, count};
    for (std::uint32_t k = 0; k < base; ++k)
      group.ranks.push_back(Rank(static_cast<int>(lowest + k * count)));
    groups.push_back(group);
    blocks = count;
  }
  Builder b(s, me, static_cast<std::uint32_t>(s.size));
  Space have = Space::input;
  for (const Group& g : groups) {
    b.send(g.ranks, {have, g.first, g.count, g.count});
    b.recv_reduce(g.ranks, {have, g.mine, g.count}, {Space::output, g.mine, g.count});
    have = Space::output;
  }
  for (auto g = groups.rbegin(); g != groups.rend(); ++g) {
    const Slice each{Space::output, g->first, g->count, g->count};
    b.send(g->ranks, {Space::output, g->mine, g->count});
    b.recv(g->ranks, each, each);
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_bcube = {"bcube",  Collective::all_reduce,
                                           supports, cost,
                                           build,    by_position,
                                           0,        "a product of two numbers above 1"};

}  // namespace anyccl
