// Ranks that hang or fail leave dumps, and `anyccl blame` finds in them the rank that is at fault.

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "blame/blame.hpp"
#include "support/ranks.hpp"
#include "support/shared_counts.hpp"
#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;
using Variables = std::vector<std::pair<std::string, std::string>>;
constexpr int kRanks = 3;
constexpr Rank kFaulty{2};

/// The part of one rank; the others are there until `others` of them are through.
using Part = std::function<void(Communicator& comm, const SharedCounts& shared)>;

/// Nothing wakes a process when the count in their shared memory changes.
void wait_for(const SharedCounts& shared, int over) {
  while (shared->over < over) std::this_thread::sleep_for(1ms);
}

/// The verdict on ranks that play `part`. Nobody leaves before all but the faulty
/// one are through, as that would tell the others.
cli::Blame blamed(const std::string& transport, const Part& part, bool dies = false) {
  const TemporaryFolder folder;
  const SharedCounts shared;
  const auto outcomes = run_processes(
      kRanks,
      [&](Communicator& comm) {
        EXPECT_OK(wait(comm.barrier()));
        part(comm, shared);
        ++shared->over;
        if (comm.rank() != kFaulty && shared->stopped != 0 && shared->over == kRanks - 1)
          ::kill(shared->stopped, SIGCONT);
        wait_for(shared, dies ? kRanks - 1 : kRanks);
        static_cast<void>(comm.abort());
        std::_Exit(testing::Test::HasFailure() ? 1 : 0);
      },
      [&](int) {
        return Variables{{"ANYCCL_TRANSPORT", transport},
                         {"ANYCCL_WARN_AFTER", "0.2"},
                         {"ANYCCL_OP_TIMEOUT", "0.5"},
                         {"ANYCCL_DEBUG", "NONE"},
                         {"ANYCCL_DUMP_DIR", folder.path()}};
      },
      30);
  for (int r = 0; r < kRanks; ++r)
    EXPECT_EQ(outcomes[static_cast<std::size_t>(r)].exit_code,
              dies && r == index(kFaulty) ? -SIGKILL : 0)
        << r << ": " << outcomes[static_cast<std::size_t>(r)].output;
  const auto dumps = cli::read_dumps({folder.path()});
  if (!dumps.ok()) return {"none", "", {}, std::string(dumps.status().message())};
  return cli::find_blame(*dumps);
}

Status reduce(Communicator& comm, std::size_t count = 2) {
  std::vector<float> x(count, 1.0F);
  return wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
}

void expect_blamed(const cli::Blame& blame, const char* kind) {
  EXPECT_EQ(blame.kind, kind) << blame.text;
  EXPECT_EQ(blame.ranks, std::vector<int>{index(kFaulty)}) << blame.text;
}

class Planted : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, Planted, testing::Values("shm", "tcp"),
                         [](const auto& transport) { return std::string(transport.param); });

TEST_P(Planted, missing_call_is_blamed_on_the_rank_that_does_not_call) {
  expect_blamed(blamed(GetParam(),
                       [](Communicator& comm, const SharedCounts& shared) {
                         if (comm.rank() == kFaulty) return wait_for(shared, kRanks - 1);
                         EXPECT_FALSE(reduce(comm).ok());
                       }),
                "absent");
}

TEST_P(Planted, wrong_root_is_blamed_on_the_rank_that_has_it) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts&) {
    std::vector<float> x(2, 1.0F);
    const Rank root = comm.rank() == kFaulty ? kFaulty : Rank{0};
    static_cast<void>(wait(comm.broadcast(view(x), view(x), root)));
    EXPECT_FALSE(wait(comm.barrier()).ok());  // a root may have been through before
  });
  expect_blamed(blame, "mismatch");
  EXPECT_NE(blame.text.find("rank 2 called broadcast of 2 f32, root 2"), std::string::npos)
      << blame.text;
}

TEST_P(Planted, wrong_size_is_blamed_on_the_rank_that_has_it) {
  expect_blamed(blamed(GetParam(),
                       [](Communicator& comm, const SharedCounts&) {
                         static_cast<void>(reduce(comm, comm.rank() == kFaulty ? 3 : 2));
                         EXPECT_FALSE(wait(comm.barrier()).ok());
                       }),
                "mismatch");
}

TEST_P(Planted, stop_is_blamed_on_the_frozen_process) {
  expect_blamed(blamed(GetParam(),
                       [](Communicator& comm, const SharedCounts& shared) {
                         if (comm.rank() != kFaulty) {
                           while (shared->stopped == 0) std::this_thread::yield();
                           EXPECT_FALSE(reduce(comm).ok());
                           return;
                         }
                         shared->stopped = ::getpid();
                         ::raise(SIGSTOP);
                       }),
                "stopped");
}

TEST_P(Planted, death_is_blamed_on_the_rank_that_died) {
  expect_blamed(blamed(
                    GetParam(),
                    [](Communicator& comm, const SharedCounts&) {
                      if (comm.rank() == kFaulty) ::raise(SIGKILL);
                      EXPECT_FALSE(reduce(comm).ok());
                    },
                    true),
                "dead");
}

TEST_P(Planted, slowness_is_blamed_on_the_rank_that_lags) {
  const TemporaryFolder folder;
  expect_all_passed(run_processes(
      kRanks,
      [&](Communicator& comm) {
        for (int i = 0; i < 10; ++i) {
          if (comm.rank() == kFaulty) std::this_thread::sleep_for(30ms);  // to be slow is the fault
          EXPECT_OK(reduce(comm));
        }
        EXPECT_OK(
            comm.dump(folder.path() + "/anyccl-" + std::to_string(index(comm.rank())) + ".json"));
      },
      [&](int) {
        return Variables{{"ANYCCL_TRANSPORT", GetParam()}};
      }));
  const auto dumps = cli::read_dumps({folder.path()});
  ASSERT_OK(dumps.status());
  expect_blamed(cli::find_blame(*dumps), "slow");
}

TEST_P(Planted, receive_without_a_send_is_blamed_on_the_rank_that_does_not_send) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts& shared) {
    std::vector<float> x(4, 1.0F);
    if (comm.rank() != Rank{0}) return wait_for(shared, 1);
    EXPECT_FALSE(wait(comm.recv(view(x), kFaulty, {}, 7)).ok());
  });
  expect_blamed(blame, "absent");
  EXPECT_NE(blame.text.find("recv of 4 f32 from rank 2, tag 7"), std::string::npos) << blame.text;
}

TEST_P(Planted, order_of_two_communicators_is_blamed_with_both_calls) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts& shared) {
    CommunicatorConfig data, tensor;
    data.name = "dp";
    tensor.name = "tp";
    auto dp = comm.split(0, index(comm.rank()), data),
         tp = comm.split(0, index(comm.rank()), tensor);
    ASSERT_OK(dp.status());
    ASSERT_OK(tp.status());
    std::vector<float> x(2, 1.0F);
    EXPECT_FALSE(
        (comm.rank() == kFaulty ? wait(tp->broadcast(view(x), view(x), Rank{0})) : reduce(*dp))
            .ok());
    ++shared->over;
    wait_for(shared, kRanks);  // nobody leaves before
    static_cast<void>(dp->abort());
    static_cast<void>(tp->abort());
  });
  EXPECT_EQ(blame.kind, "cycle") << blame.text;
  for (const char* part :
       {"communicator dp, all_reduce of 2 f32", "communicator tp, broadcast of 2"})
    EXPECT_NE(blame.text.find(part), std::string::npos) << blame.text;
}

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Dump, can_be_asked_for_while_another_thread_waits) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/dump";
  run_ranks(2, [&](Communicator& comm) {
    std::vector<float> x(2, 1.0F);
    if (comm.rank() == Rank{1}) {
      ASSERT_OK(wait(comm.recv(view(x), Rank{0}, {}, 1)));
      ASSERT_OK(wait(comm.send(view(x), Rank{0})));
      return;
    }
    std::thread waits([&] { EXPECT_OK(wait(comm.recv(view(x), Rank{1}))); });
    Result<cli::RankDump> dump = Status(Code::in_progress, "");
    do {
      ASSERT_EQ(anycclCommDump(comm.handle(), path.c_str()), anycclSuccess);
      dump = cli::parse_dump(text_in(path));
      ASSERT_OK(dump.status());
    } while (dump->waits.empty());
    EXPECT_EQ(dump->waits[0].ranks, std::vector<int>{1});
    EXPECT_EQ(dump->call(dump->waits[0].number)->what, "recv of 2 f32 from rank 1, tag 0");
    std::vector<float> go(2, 1.0F);
    EXPECT_OK(wait(comm.send(view(go), Rank{1}, {}, 1)));
    waits.join();
  });
}

TEST(Dump, is_written_when_a_wait_takes_long) {
  const TemporaryFolder folder;
  expect_all_passed(run_processes(
      2,
      [&](Communicator& comm) {
        if (comm.rank() == Rank{1}) {
          while (std::filesystem::is_empty(folder.path()) || !cli::read_dumps({folder.path()}).ok())
            std::this_thread::sleep_for(1ms);  // nothing wakes a process when there is a file
          const auto dumps = cli::read_dumps({folder.path()});
          ASSERT_OK(dumps.status());
          EXPECT_EQ((*dumps)[0].reason, "wait");
          ASSERT_EQ((*dumps)[0].waits.size(), 1U);
          EXPECT_EQ((*dumps)[0].waits[0].ranks, std::vector<int>{1});
        }
        EXPECT_OK(reduce(comm));
      },
      [&](int rank) {
        return Variables{{"ANYCCL_DUMP_DIR", folder.path()},
                         {"ANYCCL_DEBUG", "NONE"},
                         {"ANYCCL_WARN_AFTER", rank == 0 ? "0.05" : "0"}};
      }));
}

TEST(Dump, has_as_many_operations_as_are_remembered) {
  const TemporaryFolder folder;
  const Environment environment(Variables{{"ANYCCL_RECORD", "4"}});
  run_ranks(2, [&](Communicator& comm) {
    for (int i = 0; i < 10; ++i) ASSERT_OK(reduce(comm));
    const std::string path = folder.path() + "/" + std::to_string(index(comm.rank()));
    ASSERT_OK(comm.dump(path));
    const auto dump = cli::parse_dump(text_in(path));
    ASSERT_OK(dump.status());
    ASSERT_EQ(dump->calls.size(), 4U);
    EXPECT_EQ(dump->calls.back().sequence, 10U);
    EXPECT_EQ(dump->calls.back().state, "done");
    EXPECT_GE(dump->calls.back().issued_ns, dump->calls.front().ended_ns);
  });
}

TEST(Dump, that_cannot_be_written_is_an_error_of_the_call_and_leaves_nothing) {
  const TemporaryFolder folder;
  run_ranks(1, [&](Communicator& comm) {
    EXPECT_EQ(comm.dump(folder.path() + "/none/dump").code(), Code::system_error);
    EXPECT_EQ(anycclCommDump(comm.handle(), nullptr), anycclInvalidArgument);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    EXPECT_OK(reduce(comm));
  });
}

TEST(Dump, replaces_neither_links_nor_devices) {
  const TemporaryFolder folder;
  const std::string link = folder.path() + "/link", pipe = folder.path() + "/pipe";
  std::filesystem::create_symlink(folder.path() + "/target", link);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  run_ranks(1, [&](Communicator& comm) {
    for (const std::string& path : {link, pipe})
      EXPECT_EQ(comm.dump(path).code(), Code::system_error) << path;
  });
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/target"));
}

TEST(Dump, that_is_larger_than_files_may_be_is_an_error_and_ends_nothing) {
  const TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  run_ranks(1, [&](Communicator& comm) {
    const rlimit small{16, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const Status status = comm.dump(folder.path() + "/dump");
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(status.code(), Code::system_error);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  });
}

TEST(Dump, into_a_folder_that_is_not_there_is_one_warning) {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  expect_all_passed(run_processes(
      2,
      [&](Communicator& comm) {
        std::vector<float> x(2, 1.0F);
        if (comm.rank() == Rank{0}) ASSERT_OK(comm.revoke());
        EXPECT_FALSE(reduce(comm).ok());
        EXPECT_OK(comm.abort());
      },
      [&](int rank) {
        return Variables{{"ANYCCL_DUMP_DIR", folder.path() + "/none"},
                         {"ANYCCL_DEBUG_FILE", log + std::to_string(rank)}};
      }));
  const std::string text = text_in(log + "0");
  const std::size_t first = text.find("no dump, see ANYCCL_DUMP_DIR");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("no dump", first + 1), std::string::npos) << text;
}

}  // namespace
}  // namespace anyccl::test
