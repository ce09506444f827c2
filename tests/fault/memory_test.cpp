// A rank that has no memory for a call does not leave its peers waiting in it.

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

class Memory : public testing::TestWithParam<const char*> {
 protected:
  static Environment::Variables variables(int /*rank*/) {
    return {{"ANYCCL_TRANSPORT", GetParam()}, {"ANYCCL_OP_TIMEOUT", "30"}};
  }
};
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

/// The process ends with what the text of its error has shown.
[[noreturn]] void end_without_memory(Communicator& comm, const std::string& text) {
  EXPECT_NE(text.find("rank 1 (host "), std::string::npos) << text;
  EXPECT_NE(text.find(" has no memory for a call: all_reduce of 16777216 f32"), std::string::npos)
      << text;
  static_cast<void>(comm.abort());
  std::_Exit(testing::Test::HasFailure() ? 1 : 0);
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
        end_without_memory(comm, anycclGetLastError(comm.handle()));
      },
      variables, 20));
}

TEST_P(Memory, that_one_rank_lacks_for_a_prepared_call_is_an_error_of_all_ranks) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        std::vector<float> x(16 << 20, 1.0F);
        const auto times = comm.create_pre_mul_sum(2.0F);
        ASSERT_OK(times.status());
        anycclCall_t call = call_of(anycclCollAllReduce, x);
        call.op = static_cast<anycclRedOp_t>(*times);
        auto sum = prepare(comm, call);
        ASSERT_OK(sum.status());
        if (comm.rank() == Rank{1}) limit_memory(rlim_t{32} << 20);
        auto work = sum->start();
        const Status status = work.ok() ? work->wait() : work.status();
        EXPECT_FALSE(status.ok());
        end_without_memory(comm, std::string(status.message()));
      },
      variables, 20));
}

TEST(Threads, that_the_system_does_not_give_are_an_error_of_creation) {
  expect_all_passed(run_processes(
      1,
      [](Communicator&) {
        limit_memory(rlim_t{20} << 20);  // two stacks
        anycclComm_t comms[4] = {};
        EXPECT_EQ(anycclCommInitAll(comms, 4, nullptr), anycclSystemError);
      },
      [](int) {
        return std::vector<std::pair<std::string, std::string>>{{"ANYCCL_TIMEOUT", "1"}};
      }));
}

void limit_file_sizes() {
  const rlimit limit{4096, 4096};
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/// A limit, and what an error of a split says where one rank has it.
struct SplitLimit {
  const char* name;
  void (*set)();
  const char* problem;
};
class Split : public testing::TestWithParam<SplitLimit> {};
INSTANTIATE_TEST_SUITE_P(
    Under, Split,
    testing::Values(SplitLimit{"RLIMIT_FSIZE", limit_file_sizes, "RLIMIT_FSIZE"},
                    SplitLimit{"RLIMIT_AS", [] { limit_memory(rlim_t{16} << 20); },
                               "of a communicator's memory: Cannot allocate memory"}),
    [](const auto& limit) { return std::string(limit.param.name); });

TEST_P(Split, that_one_rank_has_no_room_for_is_an_error_of_all_ranks) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        if (comm.rank() == Rank{1}) GetParam().set();
        CommunicatorConfig config;
        config.fields.buffSize = 32 << 20;
        const auto part = comm.split(0, index(comm.rank()), config);
        const std::string text(part.status().message());
        EXPECT_FALSE(part.ok());
        EXPECT_NE(text.find(GetParam().problem), std::string::npos) << text;
        EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
      },
      [](int) {
        return std::vector<std::pair<std::string, std::string>>{{"ANYCCL_TRANSPORT", "shm"}};
      },
      20));
}

TEST(FileSizes, that_are_limited_to_less_than_shared_memory_needs_are_an_error) {
  expect_all_passed(run_processes(1, [](Communicator&) {
    const rlimit limit{4096, 4096};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    void* memory = nullptr;
    ASSERT_EQ(anycclMemAlloc(&memory, 8 << 20), anycclSystemError);
    const std::string text = anycclGetLastError(nullptr);
    EXPECT_NE(text.find("RLIMIT_FSIZE"), std::string::npos) << text;
    sigset_t blocked;
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
    EXPECT_EQ(::sigismember(&blocked, SIGXFSZ), 0);
  }));
}

}  // namespace
}  // namespace anyccl::test
