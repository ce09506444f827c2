// The root of a broadcast needs nothing of its readers. Once one of them has died or left, its next
// calls say so.

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/unique_fd.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// Longer than a rank waits from one look at its peers to the next.
constexpr auto kPause = std::chrono::milliseconds(2);
/// The first one after the end sees it, the second one gives the reader something, if the system is
/// as fast.
constexpr int kMostCalls = 10;

void await_end(std::int64_t pid) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ASSERT_GE(process.get(), 0);
  pollfd wait{process.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, 60000), 1) << "rank 2 lives";
}

void give(Communicator& comm, const std::string& how) {
  std::vector<std::int64_t> pids(3), own{::getpid()};
  ASSERT_OK(wait(comm.all_gather(view(own), view(pids))));
  std::vector<float> x(1);
  ASSERT_OK(wait(comm.broadcast(view(x), view(x), Rank{0})));
  if (comm.rank() == Rank{2}) {
    if (how == "died") ::raise(SIGKILL);
    return;
  }
  if (comm.rank() == Rank{0}) await_end(pids[2]);
  Status status;
  int calls = 0;
  for (; status.ok() && calls < 1000; ++calls) {
    std::this_thread::sleep_for(kPause);
    status = wait(comm.broadcast(view(x), view(x), Rank{0}));
  }
  EXPECT_EQ(status.code(), Code::remote_error) << status.message();
  EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
  if (comm.rank() != Rank{0}) return;
  EXPECT_LE(calls, kMostCalls);
  for (const std::string& text :
       {how, std::string("has not read what rank 0"), std::string("broadcast of 1 f32")})
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
}

class Unread : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Unread, data_is_an_error_of_who_gave_it) {
  const auto& [transport, how] = GetParam();
  const auto outcomes = run_processes(
      3, [how = how](Communicator& comm) { give(comm, how); },
      [transport = transport](int) {
        return Environment::Variables{{"ANYCCL_TRANSPORT", transport}};
      });
  for (std::size_t r = 0; r < outcomes.size(); ++r)
    EXPECT_EQ(outcomes[r].exit_code, r == 2 && how == "died" ? -SIGKILL : 0) << outcomes[r].output;
}
INSTANTIATE_TEST_SUITE_P(All, Unread,
                         testing::Combine(testing::Values("tcp", "unix"),
                                          testing::Values("died", "has left")),
                         [](const auto& test) {
                           const bool died = std::get<1>(test.param) == "died";
                           return std::get<0>(test.param) + (died ? "_died" : "_left");
                         });

}  // namespace
}  // namespace anyccl::test
