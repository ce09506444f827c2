// Chunked ring: a ring whose blocks go round in halves, so that a rank works on one half while the
// other is on its way. Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 69(2), 2009, with the chunks of Gloo's allreduce_ring_chunked. Least traffic,
// only between neighbours, and a late neighbour is waited for less often than in a ring; twice as
// many messages, so it suits large vectors only.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

constexpr std::uint32_t kPieces = 2;  // of a block: this many publications are on their way

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {2 * (n - 1) * kPieces, 2 * (n - 1) * kPieces, n * kPieces, n - 1};
}

Schedule build(const Shape& s, Rank me) {
  const int n = s.size, r = index(me), last = 2 * (n - 1);
  const Rank next = wrap(r + 1, n), prev = wrap(r - 1, n);
  Builder b(s, me, static_cast<std::uint32_t>(n) * kPieces);
  if (n == 1) b.copy({Space::input, 0, kPieces}, {Space::output, 0, kPieces});
  for (int k = 0; k <= last && n > 1; ++k)  // block r - k is summed until k = n - 1, then shared
    for (std::uint32_t piece = 0; piece < kPieces; ++piece) {
      const std::uint32_t chunk = uindex(wrap(r - k, n)) * kPieces + piece;
      const Slice in{Space::input, chunk}, out{Space::output, chunk};
      if (k >= n)
        b.recv(prev, out);
      else if (k > 0)
        b.recv_reduce(prev, in, out);
      if (k < last) b.send(next, k == 0 ? in : out);
    }
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_chunked_ring = {"chunked_ring", Collective::all_reduce, any_shape,
                                                  cost, build};

}  // namespace anyccl
