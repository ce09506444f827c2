// A sandbox forbids system calls, as seccomp(2) profiles of containers do: a communicator does
// without what it can do without, else its creation fails on all ranks and says which call that
// was.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <fstream>

#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

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

constexpr std::size_t kMany = 3 << 18;  ///< Elements: 3 MiB, more than a ring or a mailbox takes.

void expect_sums(Communicator& comm) {
  for (const std::size_t count : {std::size_t{1}, kMany}) {
    std::vector<float> x(count, 1.0F);
    ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
    EXPECT_EQ(x, std::vector<float>(count, 3.0F));
  }
}

std::vector<Outcome> run_without(long number, int problem, int where = 1) {
  return run_processes(3, expect_sums, [=](int rank) {
    if (rank == where) forbid(number, problem);
    return Environment::Variables{{"ANYCCL_TIMEOUT", "20"}};
  });
}

/// On one rank only, which all others hear of; rank 0 is the one that they meet at.
struct Call {
  const char* name;
  long number;
  std::vector<int> ranks = {0, 1};
};
class Sandbox : public testing::TestWithParam<Call> {};

TEST_P(Sandbox, without_it_ranks_communicate) {
  for (const int problem : {EPERM, ENOSYS})
    for (const int rank : GetParam().ranks)
      expect_all_passed(run_without(GetParam().number, problem, rank));
}
INSTANTIATE_TEST_SUITE_P(Calls, Sandbox,
                         testing::Values(Call{"membarrier", SYS_membarrier},
                                         Call{"process_vm_readv", SYS_process_vm_readv},
                                         Call{"pidfd_open", SYS_pidfd_open},
                                         Call{"eventfd2", SYS_eventfd2},
                                         // AddressSanitizer needs it in the threads of rank 0.
                                         Call{"sched_getaffinity", SYS_sched_getaffinity, {1}}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SandboxWithoutMemfd, is_an_error_of_all_ranks_that_names_the_call) {
  const std::vector<Outcome> ranks = run_without(SYS_memfd_create, EPERM);
  for (const Outcome& rank : ranks) {
    const std::string& text = rank.output;
    EXPECT_EQ(rank.exit_code, 3);
    EXPECT_NE(text.find("memfd_create"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
  }
}

// --- cross-memory attach -------------------------------------------------------------------------

/// Each rank passes a long message on to the next one.
void expect_messages(Communicator& comm) {
  const int me = index(comm.rank()), ranks = comm.size(), before = (me + ranks - 1) % ranks;
  const std::vector<float> out(kMany, static_cast<float>(me));
  std::vector<float> in(kMany, -1.0F);
  auto sent = comm.send(view(out), Rank{(me + 1) % ranks});
  ASSERT_OK(sent.status());
  ASSERT_OK(wait(comm.recv(view(in), Rank{before})));
  EXPECT_EQ(in, std::vector<float>(kMany, static_cast<float>(before)));
  ASSERT_OK(sent->wait());
}

/// Peers read this process's memory also where Yama (ptrace_scope=1) would keep them from it.
Environment::Variables copying_by_cma() {
  EXPECT_TRUE(::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY) == 0 || errno == EINVAL);
  return {{"ANYCCL_SHM_COPY", "cma"}, {"ANYCCL_TIMEOUT", "20"}};
}

std::size_t lines_with(const std::string& path, const std::string& text) {
  std::ifstream file(path);
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) count += line.find(text) != line.npos ? 1U : 0U;
  return count;
}

/// What it is copied by where nothing forbids it: this sandbox comes when that is settled.
TEST(CrossMemoryAttach, that_is_forbidden_later_is_an_error_of_all_ranks_that_names_the_call) {
  const auto fail = [](Communicator& comm, bool collective) {
    if (comm.rank() == Rank{1}) forbid(SYS_process_vm_readv, EPERM);
    std::vector<float> x(kMany, 1.0F);
    const Status status = wait(collective ? comm.all_reduce(view(x), view(x), ReduceOp::sum)
                               : comm.rank() == Rank{1} ? comm.recv(view(x), Rank{0})
                                                        : comm.send(view(x), Rank{1}));
    EXPECT_NE(status.message().find("read the memory of process"), std::string::npos)
        << status.message();
    static_cast<void>(comm.abort());
  };
  for (const bool collective : {false, true})
    expect_all_passed(run_processes(
        2, [&](Communicator& comm) { fail(comm, collective); },
        [](int) { return copying_by_cma(); }));
}

TEST(CrossMemoryAttach, is_done_without_and_its_absence_is_said_once) {
  for (const int problem : {EPERM, ENOSYS}) {
    const TemporaryFolder logs;
    const auto communicate = [](Communicator& comm) {
      auto other = comm.split(0, index(comm.rank()));
      ASSERT_OK(other.status());
      for (Communicator* each : {&comm, &*other}) {
        expect_sums(*each);
        expect_messages(*each);
      }
    };
    expect_all_passed(run_processes(3, communicate, [&](int rank) {
      if (rank == 1) forbid(SYS_process_vm_readv, problem);
      Environment::Variables variables = copying_by_cma();
      variables.insert(variables.end(),
                       {{"ANYCCL_DEBUG", "INFO"},
                        {"ANYCCL_DEBUG_SUBSYS", "SHM"},
                        {"ANYCCL_DEBUG_FILE", logs.path() + "/" + std::to_string(rank)}});
      return variables;
    }));
    EXPECT_EQ(lines_with(logs.path() + "/1", "is copied twice"), 1U);
    EXPECT_EQ(lines_with(logs.path() + "/0", "is copied twice"), 0U);
  }
}

}  // namespace
}  // namespace anyccl::test
