// ANYCCL_RECONNECT: connections that are lost while their ranks live are replaced, and no result
// changes.

#include <filesystem>
#include <fstream>

#include "support/add_up.hpp"
#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

struct Losses {
  const char* name;
  const char* faults;
  const char* checksum = "0";
};

/// How often a connection took the place of another one, as processes have logged it in a folder.
int reconnections(const std::string& folder) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream log(file.path());
    for (std::string line; std::getline(log, line);)
      count += line.find("connected again") != std::string::npos ? 1 : 0;
  }
  return count;
}

/// All ranks with `losses`.
std::function<Environment::Variables(int)> with(const Losses& losses, const std::string& logs) {
  return [losses, logs](int rank) {
    return Environment::Variables{{"ANYCCL_TRANSPORT", "tcp"},
                                  {"ANYCCL_RECONNECT", "60"},
                                  {"ANYCCL_OP_TIMEOUT", "120"},
                                  {"ANYCCL_CHAOS", losses.faults},
                                  {"ANYCCL_CHECKSUM", losses.checksum},
                                  {"ANYCCL_DEBUG", "INFO"},
                                  {"ANYCCL_DEBUG_SUBSYS", "NET"},
                                  {"ANYCCL_DEBUG_FILE", logs + "/" + std::to_string(rank)}};
  };
}

void gather(Communicator& comm, int rounds) {
  std::vector<std::int64_t> x(100'000, index(comm.rank()));
  std::vector<std::int64_t> all(x.size() * static_cast<std::size_t>(comm.size()));
  for (int round = 0; round < rounds; ++round) {
    std::fill(all.begin(), all.end(), -1);
    ASSERT_OK(wait(comm.all_gather(view(x), view(all))));
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(all[i], static_cast<std::int64_t>(i / x.size()));
  }
}

class LostConnections : public testing::TestWithParam<Losses> {};

/// A rank sends some 20 MB.
TEST_P(LostConnections, change_no_result) {
  const TemporaryFolder logs;
  expect_all_passed(run_processes(
      3,
      [](Communicator& comm) {
        ASSERT_OK(add_up(comm, 30));
        gather(comm, 10);
      },
      with(GetParam(), logs.path()), 120));
  EXPECT_GT(reconnections(logs.path()), 3);
}
INSTANTIATE_TEST_SUITE_P(, LostConnections,
                         testing::Values(Losses{"cut", "cut=1e-6"},
                                         Losses{"cut_in_pieces", "cut=1e-6,partial=0.3"},
                                         Losses{"cut_with_checksums", "cut=1e-6", "1"},
                                         Losses{"damaged", "corrupt=5e-7", "1"}),
                         [](const auto& losses) { return std::string(losses.param.name); });

/// Rank 1 takes no part while rank 0 needs what was under way: the thread that connects sends it.
TEST(LostConnection, is_replaced_while_a_rank_computes) {
  const TemporaryFolder logs;
  const Losses losses{"", "cut=1e-6"};
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        std::vector<std::int32_t> block(1 << 18), small(1);
        for (int round = 0; round < 20; ++round) {
          if (comm.rank() == Rank{1}) {
            ASSERT_OK(wait(comm.send(view(block), Rank{0})));
            ASSERT_OK(wait(comm.recv(view(small), Rank{0})));
          } else {
            ASSERT_OK(wait(comm.recv(view(block), Rank{1})));
            ASSERT_OK(wait(comm.send(view(small), Rank{1})));
          }
        }
      },
      with(losses, logs.path()), 120));
  EXPECT_GT(reconnections(logs.path()), 3);
}

/// A frame that is lost before it is counted is lost for good: an error, and no rank waits for
/// ever.
TEST(LostConnection, does_not_bring_back_a_frame_that_was_never_sent) {
  const TemporaryFolder logs;
  const Losses losses{"", "drop=0.01", "1"};
  const auto outcomes = run_processes(
      2,
      [](Communicator& comm) {
        const Status status = add_up(comm, 1000000);
        EXPECT_EQ(status.code(), Code::remote_error) << status.message();
        EXPECT_NE(status.message().find("rank " + std::to_string(1 - index(comm.rank()))),
                  std::string::npos)
            << status.message();
      },
      with(losses, logs.path()), 120);
  expect_all_passed(outcomes);
}

TEST(Reconnecting, is_the_same_on_all_ranks) {
  const auto outcomes = run_processes(
      2, [](Communicator&) {},
      [](int rank) {
        return Environment::Variables{{"ANYCCL_RECONNECT", rank == 0 ? "0" : "10"}};
      });
  for (const Outcome& outcome : outcomes)
    EXPECT_NE(outcome.output.find("ANYCCL_RECONNECT must be the same"), std::string::npos)
        << outcome.output;
}

}  // namespace
}  // namespace anyccl::test
