// One-shot: everyone reads the inputs of the ranks before it where they lie and adds them up at
// once, by the aligned tree. One round and one rounding; the last rank reads everything, so it
// suits small messages and few ranks.

#include "algorithm/catalog/prefix.hpp"

namespace anyccl {
namespace {

Cost cost(const Shape& s) {
  const auto n = static_cast<std::uint32_t>(s.size);
  return {n > 1, n - 1, 1, n > 1};
}

Schedule build(const Shape& s, Rank me) {
  Builder b(s, me, 1);
  b.send(ranks_after(index(me), s.size), {Space::input});
  if (me == Rank{0})
    b.copy({Space::input}, {Space::output});
  else
    b.recv_reduce(ranks_before(index(me) + 1), {Space::input}, {Space::output});
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm scan_one_shot = {"one_shot", Collective::scan,    any_shape, cost,
                                        build,      the_tree_in_one_step};

}  // namespace anyccl
