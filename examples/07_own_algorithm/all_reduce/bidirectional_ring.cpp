// Bidirectional ring: two rings at once, one in each direction, each with one half of the vector.
// Uses both directions of every link: on full-duplex links it takes half as long as a ring;
// elsewhere it is a ring with twice as many messages.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {4 * (n - 1), 4 * (n - 1), 2 * n, n - 1};  // a rank's sends count one at a time
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me);
  const auto half = static_cast<std::uint32_t>(n);
  Builder b(s, me, 2 * half);  // n chunks for each of the two rings
  if (n == 1) b.copy({Space::input, 0, 2}, {Space::output, 0, 2});
  // Chunk i of the ring that goes up (+1) or down (-1).
  const auto chunk = [&](Space space, int direction, int i) {
    return Slice{space, uindex(wrap(i, n)) + (direction > 0 ? 0 : half)};
  };
  for (int k = 0; k < n - 1; ++k) {  // then rank r owns the sum of chunk r + 1, or r - 1
    for (const int d : {1, -1}) {
      b.send(wrap(r + d, n), chunk(k == 0 ? Space::input : Space::output, d, r - d * k));
      b.recv_reduce(wrap(r - d, n), chunk(Space::input, d, r - d * (k + 1)),
                    chunk(Space::output, d, r - d * (k + 1)));
    }
  }
  for (int k = 0; k < n - 1; ++k) {
    for (const int d : {1, -1}) {
      b.send(wrap(r + d, n), chunk(Space::output, d, r + d * (1 - k)));
      b.recv(wrap(r - d, n), chunk(Space::output, d, r - d * k));
    }
  }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_bidirectional_ring = {
    "bidirectional_ring", Collective::all_reduce, any_shape, cost, build};

}  // namespace anyccl
