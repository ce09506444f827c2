// Hypercube: as many parts as the cube has dimensions; in each round every part crosses another
// dimension, so all links of a rank are busy in every round. Johnsson and Ho, "Optimum broadcasting
// and personalized communication in hypercubes", IEEE Trans. Computers 38(9), 1989. Fewest rounds,
// and only between neighbours in the cube; sends the whole vector in each, so it suits small
// messages on networks with many links per rank. For powers of two only.

#include <algorithm>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const std::uint32_t d = ceil_log2(s.size);
  return {d, d * d, std::max(d, 1U), d};
}

Schedule build(const Shape& s, Rank me) {
  const std::uint32_t d = ceil_log2(s.size), parts = std::max(d, 1U);
  const Slice all{Space::output, 0, parts}, each{Space::output, 0, 1, 1};
  Builder b(s, me, parts);
  const Slice got = b.scratch(0, parts);
  b.copy({Space::input, 0, parts}, all);
  for (std::uint32_t k = 0; k < d; ++k) {
    PeerList across;  // of each part
    for (std::uint32_t part = 0; part < d; ++part)
      across.push_back(Rank{index(me) ^ (1 << (part + k) % d)});
    b.send(across, each);  // is complete only when the peers have read it, so:
    b.recv(across, {got.space, got.first, 1, 1});
    b.reduce(got, all);
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_hypercube = {
    "hypercube", Collective::all_reduce, power_of_two, cost, build, by_position, 0, kPowerOfTwo};

}  // namespace anyccl
