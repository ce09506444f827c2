// A straggler: ranks that train together, one of which has more to do, and what their traces show.
//   mkdir traces
//   ANYCCL_TRACE=traces anyccl run -n 4 -- 13_straggler
//   anyccl trace summary traces
// In each step a rank computes gradients, and loads the next batch while they are added up. The
// last rank takes three times as long for the gradients.

#include <chrono>

#include "example.hpp"

namespace {

using anyccl::Communicator, anyccl::ReduceOp, anyccl::view;
using example::expect, example::must;
using std::chrono::milliseconds;

/// Stands for work that takes so long.
void compute(milliseconds time) {
  std::this_thread::sleep_for(time);
}

void step(Communicator& comm, milliseconds time, std::vector<float>& gradients) {
  compute(time);
  gradients.assign(gradients.size(), 1.0F);
  auto added_up = must(comm.all_reduce(view(gradients), view(gradients), ReduceOp::sum));
  compute(milliseconds(10));
  must(added_up.wait());
  expect(gradients[0] == static_cast<float>(comm.size()), "the sum of gradients");
}

}  // namespace

int main() {
  auto comm = must(Communicator::from_env());
  const bool is_last = index(comm.rank()) == comm.size() - 1;
  std::vector<float> gradients(1 << 18);
  for (int i = 0; i < 20; ++i) step(comm, milliseconds(is_last ? 60 : 20), gradients);
  if (is_last) std::printf("20 steps on %d ranks\n", comm.size());
  must(comm.destroy());
}
