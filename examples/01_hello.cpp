// Hello: every process joins, and all of them add up one number.
//   anyccl run -n 4 -- 01_hello

#include "example.hpp"

int main() {
  using anyccl::view, anyccl::wait;
  using example::expect, example::must;

  auto comm = must(anyccl::Communicator::from_env());  // returns when all have joined
  const int rank = anyccl::index(comm.rank()), ranks = comm.size();

  const std::vector<int> mine = {rank + 1};
  std::vector<int> sum = {0};
  must(wait(comm.all_reduce(view(mine), view(sum), anyccl::ReduceOp::sum)));

  std::printf("hello from rank %d of %d: 1 + ... + %d = %d\n", rank, ranks, ranks, sum[0]);
  expect(sum[0] == ranks * (ranks + 1) / 2, "the sum");
  must(comm.destroy());
}
