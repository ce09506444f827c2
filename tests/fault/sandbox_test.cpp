// A sandbox forbids system calls, as seccomp(2) profiles of containers do: a communicator does without what it
// can do without, else its creation fails on all ranks and says which call that was.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// From now on this call fails with `problem` in this process.
void forbid(long number, int problem) {
  const auto error =
      static_cast<std::uint32_t>(SECCOMP_RET_ERRNO) | static_cast<std::uint32_t>(problem);
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    std::_Exit(9);
}

void expect_sums(Communicator& comm) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1} << 20}) {
    std::vector<float> x(count, 1.0F);
    ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
    EXPECT_EQ(x, std::vector<float>(count, 3.0F));
  }
}

std::vector<Outcome> run_without(long number, int problem, const std::string& copies = "") {
  return run_processes(3, expect_sums, [=](int rank) {
    if (rank == 1) forbid(number, problem);
    return Environment::Variables{{"ANYCCL_SHM_COPY", copies}, {"ANYCCL_TIMEOUT", "20"}};
  });
}

/// On one rank only, which all others hear of.
struct Call {
  const char* name;
  long number;
};
class Sandbox : public testing::TestWithParam<Call> {};

TEST_P(Sandbox, without_it_ranks_communicate) {
  for (const int problem : {EPERM, ENOSYS})
    expect_all_passed(run_without(GetParam().number, problem));
}
INSTANTIATE_TEST_SUITE_P(Calls, Sandbox,
                         testing::Values(Call{"membarrier", SYS_membarrier},
                                         Call{"process_vm_readv", SYS_process_vm_readv},
                                         Call{"pidfd_open", SYS_pidfd_open},
                                         Call{"eventfd2", SYS_eventfd2},
                                         Call{"sched_getaffinity", SYS_sched_getaffinity}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SandboxWithoutMemfd, is_an_error_of_all_ranks_that_names_the_call) {
  const std::vector<Outcome> ranks = run_without(SYS_memfd_create, EPERM);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::string& text = ranks[r].output;
    EXPECT_EQ(ranks[r].exit_code, 3);
    EXPECT_NE(text.find("memfd_create"), std::string::npos) << text;
    EXPECT_TRUE(r == 1 || text.find("rank 1") != std::string::npos) << text;
  }
}

}  // namespace
}  // namespace anyccl::test
