// Each fault that ANYCCL_CHAOS adds to connections, alone: what a user sees.

#include <algorithm>
#include <chrono>

#include "support/add_up.hpp"

namespace anyccl::test {
namespace {

/// `faults` for all ranks but rank 0, so that the first culprit is one of them.
std::function<Environment::Variables(int)> with(const std::string& faults,
                                                Environment::Variables others = {}) {
  return [=](int rank) {
    Environment::Variables all = others;
    all.insert(all.end(), {{"ANYCCL_TRANSPORT", "tcp"}, {"ANYCCL_OP_TIMEOUT", "120"}});
    if (rank > 0) all.emplace_back("ANYCCL_CHAOS", faults);
    return all;
  };
}

class HarmlessFault : public testing::TestWithParam<const char*> {};

TEST_P(HarmlessFault, changes_no_result) {
  for (const char* checksum : {"0", "1"})
    expect_all_passed(run_processes(
        3, [](Communicator& comm) { ASSERT_OK(add_up(comm, 30)); },
        with(GetParam(), {{"ANYCCL_CHECKSUM", checksum}}), 120));
}
INSTANTIATE_TEST_SUITE_P(Chaos, HarmlessFault,
                         testing::Values("delay=0.2:500us", "partial=0.5", "reorder=0.5",
                                         "slow=50M"),
                         [](const auto& fault) {
                           const std::string text = fault.param;
                           return text.substr(0, text.find('='));
                         });

std::function<Environment::Variables(int)> over_shared_memory(const char* faults) {
  return [=](int) {
    return Environment::Variables{{"ANYCCL_TRANSPORT", "shm"}, {"ANYCCL_CHAOS", faults}};
  };
}

TEST(Chaos, delays_in_shared_memory_change_no_result) {
  expect_all_passed(run_processes(
      3,
      [](Communicator& comm) {
        ASSERT_OK(add_up(comm, 30));
        for (const std::size_t count : {1UL, 1000UL, 300000UL}) {
          std::vector<float> x(count, 7.0F), y(count);
          if (comm.rank() == Rank{0}) ASSERT_OK(wait(comm.send(view(x), Rank{2})));
          if (comm.rank() == Rank{2}) {
            ASSERT_OK(wait(comm.recv(view(y), Rank{0})));
            EXPECT_EQ(x, y);
          }
        }
      },
      over_shared_memory("seed=3,delay=0.2:500us"), 120));
}

TEST(Chaos, delays_in_shared_memory_take_their_time) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        const auto begin = std::chrono::steady_clock::now();
        ASSERT_OK(add_up(comm, 1));
        EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(60));
      },
      over_shared_memory("delay=1:20ms"), 120));
}

/// Two ranks, of which rank 1 has the faults: both must say that the connection to the other one
/// failed, and how.
void expect_both_name_the_other(const std::string& faults, const std::vector<std::string>& texts) {
  expect_all_passed(run_processes(
      2,
      [&](Communicator& comm) {
        const Status status = add_up(comm, 1000000);
        const std::string message(status.message());
        EXPECT_EQ(status.code(), Code::remote_error) << message;
        EXPECT_NE(message.find("rank " + std::to_string(1 - index(comm.rank()))), std::string::npos)
            << message;
        EXPECT_TRUE(std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
          return message.find(text) != std::string::npos;
        })) << message;
      },
      with(faults, {{"ANYCCL_CHECKSUM", "1"}}), 120));
}

TEST(Chaos, cut_connections_are_named) {
  expect_both_name_the_other("cut=1e-5", {"died", "connection"});
}
TEST(Chaos, flipped_bits_are_named_with_checksums) {
  expect_both_name_the_other("corrupt=1e-5", {"a damaged frame"});
}
TEST(Chaos, lost_frames_are_named_with_checksums) {
  expect_both_name_the_other("drop=0.01", {"a frame behind one that is missing"});
}
TEST(Chaos, repeated_frames_are_named_with_checksums) {
  expect_both_name_the_other("duplicate=0.01", {"a frame twice"});
}

/// Nothing tells a flipped bit from data then.
TEST(Chaos, flipped_bits_are_wrong_data_without_checksums) {
  const auto outcomes = run_processes(
      2,
      [](Communicator& comm) {
        std::vector<float> x(1 << 20, 1.0F), y(x.size());
        const Status status = wait(comm.broadcast(view(x), view(y), Rank{0}));
        if (comm.rank() == Rank{1}) say(status.ok() && x != y ? "wrong" : "right");
      },
      with("corrupt=1e-6"), 120);
  EXPECT_EQ(outcomes[1].output, "wrong");
}

TEST(Chaos, lost_frames_are_waited_for_until_the_time_limit_without_checksums) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        const Status status = add_up(comm, 1000000);
        EXPECT_FALSE(status.ok());
        EXPECT_NE(status.message().find("rank "), std::string::npos) << status.message();
      },
      [](int rank) {
        Environment::Variables all{{"ANYCCL_TRANSPORT", "tcp"}, {"ANYCCL_OP_TIMEOUT", "1"}};
        if (rank == 1) all.emplace_back("ANYCCL_CHAOS", "drop=0.01");
        return all;
      },
      120));
}

TEST(Checksums, are_the_same_on_all_ranks) {
  const auto outcomes = run_processes(
      2, [](Communicator&) {},
      [](int rank) {
        return Environment::Variables{{"ANYCCL_CHECKSUM", rank == 0 ? "0" : "1"}};
      });
  for (const Outcome& outcome : outcomes)
    EXPECT_NE(outcome.output.find("ANYCCL_CHECKSUM must be the same"), std::string::npos)
        << outcome.output;
}

}  // namespace
}  // namespace anyccl::test
