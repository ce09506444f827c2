#pragma once

#include "support/ranks.hpp"

namespace anyccl::test {

/// Sums of vectors of several sizes, until one fails or `rounds` of each were right.
inline Status add_up(Communicator& comm, int rounds) {
  for (int round = 0; round < rounds; ++round)
    for (const std::size_t count : {1UL, 100UL, 30000UL}) {
      std::vector<float> x(count, static_cast<float>(index(comm.rank()) + round));
      const Status status = wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
      if (!status.ok()) return status;
      const int n = comm.size();
      const auto sum = static_cast<float>(n * (n - 1) / 2 + n * round);
      if (x != std::vector<float>(count, sum)) return {Code::internal, "a wrong sum"};
    }
  return {};
}

}  // namespace anyccl::test
