// One-shot: everyone tells everyone, which in shared memory is one line that all others read. One
// round, n - 1 lines to look at. The barrier of one flag per rank of Mellor-Crummey and Scott,
// "Algorithms for scalable synchronization on shared-memory multiprocessors", ACM TOCS 9(1), 1991,
// without its root.

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {
namespace {

Schedule build(const Shape& s, Rank me) {
  const Slice in{Space::input}, out{Space::output};
  Builder b(s, me, 1);
  b.send(b.everyone(), in).recv_reduce(b.everyone(), in, out);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm barrier_one_shot = {"one_shot", Collective::barrier, any_shape, nullptr,
                                           build};

}  // namespace anyccl
