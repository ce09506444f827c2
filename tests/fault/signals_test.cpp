// Signals all the time, as a profiler sends them, without SA_RESTART: no call hangs or fails for
// that.

#include <sys/time.h>

#include <atomic>
#include <csignal>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Interrupts the process every 100 us while it lives.
class SignalStorm {
 public:
  SignalStorm() {
    struct sigaction action {};
    action.sa_handler = [](int) { count().fetch_add(1, std::memory_order_relaxed); };
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval often{{0, 100}, {0, 100}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  SignalStorm(const SignalStorm&) = delete;
  SignalStorm& operator=(const SignalStorm&) = delete;
  ~SignalStorm() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
    EXPECT_GT(count().load(std::memory_order_relaxed), 0);
  }

 private:
  static std::atomic<int>& count() {
    static std::atomic<int> signals{0};
    return signals;
  }
  struct sigaction before_ {};
};

/// Something that waits in each of the ways there are.
void use(Communicator& comm) {
  const Rank other{1 - index(comm.rank())};
  for (const std::size_t count : {std::size_t{2}, std::size_t{5000}, std::size_t{2} << 20}) {
    std::vector<float> x(count, 1), y(count);
    for (int i = 0; i < 5; ++i) ASSERT_OK(wait(comm.all_reduce(view(x), view(y), ReduceOp::sum)));
    EXPECT_EQ(y.back(), 2);
    ASSERT_OK(comm.rank() == Rank{0} ? wait(comm.send(view(x), other))
                                     : wait(comm.recv(view(y), other)));
    ASSERT_OK(wait(comm.barrier()));
  }
}

class Signals : public testing::TestWithParam<std::string> {
 protected:
  std::function<Variables(int)> variables() const {
    return [transport = GetParam()](int) { return Variables{{"ANYCCL_TRANSPORT", transport}}; };
  }
};

TEST_P(Signals, interrupt_no_call_for_good) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        const SignalStorm storm;
        use(comm);
        auto half = comm.split(0, 0);
        ASSERT_OK(half.status());
        use(*half);
        ASSERT_OK(half->destroy());
      },
      variables()));
}

TEST_P(Signals, do_not_keep_a_communicator_from_being_created) {
  const Environment transport({{"ANYCCL_TRANSPORT", GetParam() == "shm" ? "" : GetParam()}});
  const SignalStorm storm;
  for (int i = 0; i < 5; ++i)
    run_ranks(2, [](Communicator& comm) { EXPECT_OK(wait(comm.barrier())); });
}

TEST_P(Signals, do_not_move_a_time_limit) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        const SignalStorm storm;
        std::vector<float> x(2);
        const Status status = wait(comm.recv(view(x), Rank{1 - index(comm.rank())}));
        // The other one has its limit later, and hears of it.
        if (comm.rank() == Rank{0}) {
          EXPECT_EQ(status.code(), Code::timeout) << status.message();
        }
        EXPECT_FALSE(status.ok());
        EXPECT_OK(comm.abort());
      },
      [&](int rank) {
        Variables all = variables()(rank);
        all.emplace_back("ANYCCL_OP_TIMEOUT", rank == 0 ? "1" : "60");
        return all;
      }));
}

INSTANTIATE_TEST_SUITE_P(transports, Signals, testing::Values("shm", "unix", "tcp"),
                         [](const auto& transport) { return transport.param; });

}  // namespace
}  // namespace anyccl::test
