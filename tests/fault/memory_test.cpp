// A rank that has no memory for a call does not leave its peers waiting in it.

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

class Memory : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, Memory, testing::Values("shm", "tcp"),
                         [](const auto& transport) { return std::string(transport.param); });

/// From now on the process gets no more than `more` bytes.
void limit_memory(rlim_t more) {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + more;
  const rlimit limit{most, most};
  EXPECT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
}

TEST_P(Memory, that_one_rank_lacks_for_a_call_is_an_error_of_all_ranks) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        std::vector<float> x(16 << 20, 1.0F);
        float factor = 2;
        anycclRedOp_t times{};
        ASSERT_EQ(anycclRedOpCreatePreMulSum(&times, &factor, anycclFloat32,
                                             anycclScalarHostImmediate, comm.handle()),
                  anycclSuccess);
        if (comm.rank() == Rank{1}) limit_memory(rlim_t{32} << 20);
        EXPECT_NE(anycclAllReduce(x.data(), x.data(), x.size(), anycclFloat32, times, comm.handle(),
                                  nullptr),
                  anycclSuccess);
        const std::string text = anycclGetLastError(comm.handle());
        EXPECT_NE(text.find("rank 1 (host "), std::string::npos) << text;
        EXPECT_NE(text.find(" has no memory for a call"), std::string::npos) << text;
        static_cast<void>(comm.abort());
        std::_Exit(testing::Test::HasFailure() ? 1 : 0);
      },
      [](int) {
        return std::vector<std::pair<std::string, std::string>>{{"ANYCCL_TRANSPORT", GetParam()},
                                                                {"ANYCCL_OP_TIMEOUT", "30"}};
      },
      20));
}

}  // namespace
}  // namespace anyccl::test
