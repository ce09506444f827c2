// Every algorithm between processes, with every way to copy forced: what threads cannot show.

#include "conformance/run_collective.hpp"

namespace anyccl::test {
namespace {

class Copies : public testing::TestWithParam<const char*> {};

TEST_P(Copies, between_processes_are_right) {
  const std::string copy = GetParam();
  const auto body = [&](Communicator& all) {
    in_arena = copy == "window";
    for (const Algorithm* algorithm : all_algorithms()) {
      if (!algorithm->supports({algorithm->collective, 4, Rank{0}, false, {}})) continue;
      SCOPED_TRACE(id(*algorithm));
      const Environment env(
          {{"ANYCCL_ALGO", std::string(algorithm->name)}, {"ANYCCL_SHM_COPY", copy}});
      auto comm = all.split(0, index(all.rank()));
      ASSERT_OK(comm.status());
      for (const std::size_t count : {257UL, 20000UL, effort(80001UL, 300001UL, 300001UL)})
        if (!testing::Test::HasFailure()) run_once(*comm, algorithm->collective, count);
    }
  };
  expect_all_passed(run_processes(4, body, {}, 180));  // a second of a core for each algorithm
}
TEST_P(Copies, of_messages_between_processes_are_right) {
  const std::string copy = GetParam();
  const Environment env({{"ANYCCL_SHM_COPY", copy}});
  expect_all_passed(run_processes(4, [&](Communicator& comm) {
    in_arena = copy == "window";
    for (const std::size_t count : {0UL, 1UL, 257UL, 20000UL, 300001UL, 2000003UL})
      if (!testing::Test::HasFailure()) run_once(comm, Collective::send, count);
  }));
}
INSTANTIATE_TEST_SUITE_P(CopyFrom, Copies, testing::Values("staged", "cma", "window"));

}  // namespace
}  // namespace anyccl::test
