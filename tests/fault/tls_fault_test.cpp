// What ranks see that encrypt their connections where these, or the other ranks, are not as they
// should be.

#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "support/add_up.hpp"
#include "support/meet_again.hpp"

namespace anyccl::test {
namespace {

constexpr const char* kTls = "ANYCCL_TLS";

std::function<Environment::Variables(int)> encrypted(const std::string& faults = "") {
  return [=](int rank) {
    Environment::Variables all{
        {"ANYCCL_TRANSPORT", "tcp"}, {kTls, "1"}, {"ANYCCL_OP_TIMEOUT", "120"}};
    if (rank > 0 && !faults.empty()) all.emplace_back("ANYCCL_CHAOS", faults);
    return all;
  };
}

class HarmlessFault : public testing::TestWithParam<const char*> {};

TEST_P(HarmlessFault, changes_no_result) {
  for (const char* connect_all : {"32", "0"})
    expect_all_passed(run_processes(
        3, [](Communicator& comm) { ASSERT_OK(add_up(comm, 30)); },
        [&](int rank) {
          auto all = encrypted(GetParam())(rank);
          all.emplace_back("ANYCCL_CONNECT_ALL", connect_all);
          return all;
        },
        120));
}
INSTANTIATE_TEST_SUITE_P(OverTls, HarmlessFault,
                         testing::Values("delay=0.2:500us", "partial=0.5", "reorder=0.5",
                                         "slow=50M"),
                         [](const auto& fault) {
                           const std::string text = fault.param;
                           return text.substr(0, text.find('='));
                         });

/// Two ranks, of which rank 1 has the faults: both fail and name the other one, and no sum is
/// wrong.
void expect_both_name_the_other(const std::string& faults,
                                const std::array<std::string, 2>& texts) {
  expect_all_passed(run_processes(
      2,
      [&](Communicator& comm) {
        const Status status = add_up(comm, 1000000);
        const std::string message(status.message());
        EXPECT_EQ(status.code(), Code::remote_error) << message;
        EXPECT_NE(message.find("rank " + std::to_string(1 - index(comm.rank()))), std::string::npos)
            << message;
        EXPECT_NE(message.find(texts[static_cast<std::size_t>(index(comm.rank()))]),
                  std::string::npos)
            << message;
      },
      encrypted(faults), 120));
}

TEST(OverTls, flipped_bits_are_named) {
  for (const char* seed : {"1", "2", "3"})
    expect_both_name_the_other(std::string("corrupt=1e-5,seed=") + seed,
                               {"rank 1", "rank 0 sent data that failed the check of TLS"});
}
TEST(OverTls, cut_connections_are_named) {
  expect_both_name_the_other("cut=1e-5", {"died", "died"});
}

TEST(OverTls, ranks_of_which_one_does_not_encrypt_are_named) {
  for (const int plain : {0, 1}) {
    const auto outcomes = run_processes(
        2, [](Communicator&) {},
        [&](int rank) {
          return Environment::Variables{{kTls, rank == plain ? "0" : "1"}};
        });
    for (const Outcome& outcome : outcomes)
      for (const char* text : {"ANYCCL_TLS must be the same", "rank 0", "rank 1"})
        EXPECT_NE(outcome.output.find(text), std::string::npos) << outcome.output;
  }
}

TEST(OverTls, ranks_that_know_another_secret_do_not_come_in) {
  const auto outcomes = run_processes(
      2, [](Communicator&) {},
      [](int rank) {
        return Environment::Variables{{"ANYCCL_TRANSPORT", "tcp"},
                                      {kTls, "1"},
                                      {"ANYCCL_TIMEOUT", "3"},
                                      {"ANYCCL_SECRET", std::string(32, rank == 0 ? 'a' : 'b')}};
      });
  for (const Outcome& outcome : outcomes) EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcomes[1].output.find("another secret"), std::string::npos) << outcomes[1].output;
}

/// A child that the rank has forked has the keys, and uses them for nothing.
TEST(OverTls, children_that_end_disturb_nobody) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        ASSERT_OK(add_up(comm, 3));
        const pid_t child = ::fork();
        if (child == 0) {
          close_report();
          std::vector<float> x(1, 1.0F);
          const bool refused = !wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)).ok();
          static_cast<void>(comm.destroy());
          std::_Exit(refused ? 0 : 1);
        }
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        ASSERT_OK(add_up(comm, 30));
      },
      encrypted(), 120));
}

/// The variable is for connections, and there were some already.
TEST(OverTls, a_communicator_does_not_use_connections_that_were_made_before) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        ASSERT_OK(add_up(comm, 1));
        const Environment env(Environment::Variables{{kTls, "1"}});
        auto part = comm.split(0, index(comm.rank()));
        EXPECT_EQ(part.status().code(), Code::invalid_usage);
        EXPECT_NE(part.status().message().find("ANYCCL_TLS=1 came after the connection"),
                  std::string::npos)
            << part.status().message();
      },
      [](int) {
        return Environment::Variables{{"ANYCCL_TRANSPORT", "tcp"}};
      },
      120));
}

TEST(OverTls, processes_that_meet_again_make_connections_that_are_encrypted) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        ASSERT_OK(add_up(comm, 1));
        const Environment env(Environment::Variables{{kTls, "1"}});
        for (int i = 0; i < 2; ++i) {
          Communicator again = meet_again(comm);
          ASSERT_OK(add_up(again, 3));
        }
      },
      [](int) {
        return Environment::Variables{{"ANYCCL_TRANSPORT", "tcp"}};
      },
      120));
}

/// Ranks of one host that share memory have nothing to encrypt.
TEST(OverTls, ranks_of_one_host_still_share_memory) {
  expect_all_passed(run_processes(
      2, [](Communicator& comm) { ASSERT_OK(add_up(comm, 3)); },
      [](int) {
        return Environment::Variables{{kTls, "1"}, {"ANYCCL_TRANSPORT", "shm"}};
      },
      120));
}

}  // namespace
}  // namespace anyccl::test
