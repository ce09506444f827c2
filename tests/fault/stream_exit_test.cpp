// A rank may exit whatever its streams are doing.

#include <cstdlib>
#include <deque>
#include <thread>

#include "support/streams.hpp"

namespace anyccl::test {
namespace {

class StreamExit : public testing::TestWithParam<std::string> {
 protected:
  std::vector<Outcome> run(int ranks, const Body& body) const {
    return run_processes(
        ranks, body,
        [](int) {
          return std::vector<std::pair<std::string, std::string>>{{"ANYCCL_TRANSPORT", GetParam()}};
        },
        30);
  }
};

/// Never freed: threads may still use them when main() has ended.
template <typename T>
T& kept() {
  static auto* const all = new std::deque<T>;  // where leak checkers find them
  return all->emplace_back();
}
Stream& kept_stream() {
  auto& stream = kept<Stream>();
  stream = new_stream();
  return stream;
}

TEST_P(StreamExit, in_the_middle_of_operations) {
  for (int round = 0; round < 50 && !HasFailure(); ++round)
    expect_all_passed(run(2, [&](Communicator& comm) {
      Stream& stream = kept_stream();
      auto& x = kept<std::vector<float>>();
      x.assign(50000, 1.0F);
      for (int i = 0; i < 4 * (round % 10); ++i)
        if (!comm.all_reduce(view(x), view(x), ReduceOp::max, stream).ok()) break;
      std::exit(0);
    }));
}

TEST_P(StreamExit, while_operations_wait_for_a_peer_and_for_their_stream) {
  expect_all_passed(run(2, [](Communicator& comm) {
    auto& door = kept<Door>();
    Stream &busy = kept_stream(), &other = kept_stream();
    auto& x = kept<std::vector<float>>();
    x.assign(3, 1.0F);
    if (comm.rank() == Rank{0}) {
      EXPECT_OK(comm.recv(view(x), Rank{1}, other).status());  // never comes
      EXPECT_OK(busy.run([&] { static_cast<void>(door.pass(20)); }));
      EXPECT_OK(comm.barrier(busy).status());
    }
    std::exit(0);
  }));
}

TEST_P(StreamExit, waits_for_a_function_that_is_running) {
  const auto outcomes = run(1, [](Communicator&) {
    auto &started = kept<Door>(), &leaving = kept<Door>();
    Stream& stream = kept_stream();
    EXPECT_OK(stream.run([&] {
      started.open();
      EXPECT_TRUE(leaving.pass());
      const auto since = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - since < std::chrono::milliseconds(100))
        std::this_thread::yield();
      say("ended\n");
    }));
    EXPECT_OK(stream.run([] { say("began another one\n"); }));
    EXPECT_TRUE(started.pass());
    leaving.open();
    std::exit(0);
  });
  expect_all_passed(outcomes);
  EXPECT_EQ(outcomes[0].output, "ended\n");
}

TEST_P(StreamExit, from_a_function_of_the_stream) {
  expect_all_passed(run(1, [](Communicator& comm) {
    Stream& stream = kept_stream();
    EXPECT_OK(comm.barrier(stream).status());
    EXPECT_OK(stream.run([] { std::exit(0); }));
    static_cast<void>(stream.synchronize());
    std::_Exit(5);  // not reached
  }));
}

INSTANTIATE_TEST_SUITE_P(Transports, StreamExit, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace anyccl::test
