// Every algorithm over encrypted connections, between processes.

#include "conformance/run_all.hpp"

namespace anyccl::test {
namespace {

TEST(OverTls, collectives_of_processes_are_right) {
  for (const int ranks : kSanitized ? std::vector{3} : std::vector{2, 3, 4})
    expect_all_passed(run_processes(
        ranks, run_all, [](int) { return kEncrypted; }, 300));
}

}  // namespace
}  // namespace anyccl::test
