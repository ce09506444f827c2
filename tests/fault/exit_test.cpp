// A rank may exit right after its last operation: no peer sees an error.

#include <cstdlib>

#include "support/effort.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// Half of them over each transport.
int exits() {
  return effort(100, 250, 5000);
}

class Exit : public testing::TestWithParam<std::string> {};

TEST_P(Exit, right_after_the_last_operation_is_no_error_at_any_peer) {
  const int last = exits();
  for (int round = 0; round < last && !HasFailure(); ++round)
    expect_all_passed(run_processes(
        2,
        [&](Communicator& comm) {
          std::vector<float> x(round % 50 == 0 ? 200000 : round % 10 == 0 ? 1000 : 2, 1.0F);
          const Status status = round % 3 == 2
                                    ? wait(comm.broadcast(view(x), view(x), Rank{round % 2}))
                                    : wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
          if (!status.ok() || x.back() != (round % 3 == 2 ? 1.0F : 2.0F)) {
            say("FAILED: " + std::string(status.message()));
            std::exit(1);
          }
          std::exit(0);  // without destroying anything
        },
        [](int) {
          return std::vector<std::pair<std::string, std::string>>{{"ANYCCL_TRANSPORT", GetParam()}};
        }));
}

INSTANTIATE_TEST_SUITE_P(Transports, Exit, testing::Values("shm", "unix", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace anyccl::test
