// Ranks that call different things both get an error that names both calls, at once.

#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

struct Mismatch {
  const char* name;
  std::function<Result<Work>(Communicator&, std::vector<float>&)> by_rank_0, by_rank_1;
  std::vector<std::string> words;
};

Result<Work> reduce(Communicator& c, std::vector<float>& x, std::size_t count) {
  const View v{x.data(), count, DType::f32};
  return c.all_reduce(v, v, ReduceOp::sum);
}

const Mismatch kMismatches[] = {
    {"sizes",
     [](auto& c, auto& x) { return reduce(c, x, 2); },
     [](auto& c, auto& x) { return reduce(c, x, 262144); },
     {"2 f32", "262144 f32"}},
    {"roots",
     [](auto& c, auto& x) { return c.broadcast(view(x), view(x), Rank{0}); },
     [](auto& c, auto& x) { return c.broadcast(view(x), view(x), Rank{2}); },
     {"broadcast", "from rank 0", "from rank 2"}},
    {"collectives",
     [](auto& c, auto& x) { return reduce(c, x, 4); },
     [](auto& c, auto&) { return c.barrier(); },
     {"all_reduce", "barrier"}},
    {"types",
     [](auto& c, auto& x) { return reduce(c, x, 4); },
     [](auto& c, auto& x) {
       const View v{x.data(), 4, DType::i64};
       return c.all_reduce(v, v, ReduceOp::sum);
     },
     {"f32", "i64"}},
    {"operators",
     [](auto& c, auto& x) { return reduce(c, x, 4); },
     [](auto& c, auto& x) {
       const View v{x.data(), 4, DType::f32};
       return c.all_reduce(v, v, ReduceOp::max);
     },
     {"sum", "max"}},
};

class Mismatches : public testing::TestWithParam<std::tuple<int, std::string>> {};

TEST_P(Mismatches, give_every_rank_both_calls) {
  const Mismatch& m = kMismatches[std::get<0>(GetParam())];
  const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", std::get<1>(GetParam())}});
  run_ranks(3, [&](Communicator& comm) {
    std::vector<float> x(262144, 1.0F);
    ASSERT_OK(wait(comm.barrier()));
    const auto before = std::chrono::steady_clock::now();
    Status status = wait(comm.rank() == Rank{1} ? m.by_rank_1(comm, x) : m.by_rank_0(comm, x));
    if (status.ok()) status = wait(comm.barrier());  // a root may be through before anybody looks
    EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
    EXPECT_NE(status.message().find("differs between ranks"), std::string::npos)
        << status.message();
    for (const std::string& word : m.words)
      EXPECT_NE(status.message().find(word), std::string::npos)
          << word << " not in: " << status.message();
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(10));
  });
}
INSTANTIATE_TEST_SUITE_P(All, Mismatches,
                         testing::Combine(testing::Range(0, 5), testing::Values("loopback", "tcp")),
                         [](const auto& test) {
                           return std::string(kMismatches[std::get<0>(test.param)].name) +
                                  "_over_" + std::get<1>(test.param);
                         });

using Rooted = std::function<Result<Work>(Communicator&, std::vector<float>&, Rank root)>;
struct RootedCall {
  const char* name;
  Rooted call;
  bool root_reads;  ///< Else the other ranks do.
};
const std::vector<std::size_t> kOnes(4, 1), kPlaces = {0, 1, 2, 3};
BlockLayout layout_of(const Communicator& c) {
  const auto n = static_cast<std::size_t>(c.size());
  return {{kOnes.data(), n}, {kPlaces.data(), n}};
}
View one(std::vector<float>& x, std::size_t at = 0) {
  return {x.data() + at, 1, DType::f32};
}
View block_each(const Communicator& c, std::vector<float>& x) {
  return {x.data(), static_cast<std::size_t>(c.size()), DType::f32};
}
const RootedCall kRooted[] = {
    {"broadcast", [](auto& c, auto& x, Rank r) { return c.broadcast(one(x), one(x), r); }, false},
    {"reduce",
     [](auto& c, auto& x, Rank r) { return c.reduce(one(x), one(x, 9), ReduceOp::sum, r); }, true},
    {"gather", [](auto& c, auto& x, Rank r) { return c.gather(one(x, 9), block_each(c, x), r); },
     true},
    {"scatter", [](auto& c, auto& x, Rank r) { return c.scatter(block_each(c, x), one(x, 9), r); },
     false},
    {"gather_v",
     [](auto& c, auto& x, Rank r) {
       return c.gather_v(one(x, 9), block_each(c, x), layout_of(c), r);
     },
     true},
    {"scatter_v",
     [](auto& c, auto& x, Rank r) {
       return c.scatter_v(block_each(c, x), layout_of(c), one(x, 9), r);
     },
     false},
};

class OneWayMismatches : public testing::TestWithParam<std::tuple<int, std::string>> {};

/// Two ranks, each the root, or each not: both only send, so both calls may complete.
TEST_P(OneWayMismatches, are_told_in_the_next_call) {
  const RootedCall& rooted = kRooted[std::get<0>(GetParam())];
  const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", std::get<1>(GetParam())}});
  for (const int calls : {1, 20})  // more than there are records of
    run_ranks(2, [&](Communicator& comm) {
      std::vector<float> x(16, 1.0F);
      const Rank root{rooted.root_reads ? 1 - index(comm.rank()) : index(comm.rank())};
      Status status = wait(comm.barrier());
      for (int i = 0; i < calls && status.ok(); ++i) status = wait(rooted.call(comm, x, root));
      if (status.ok()) status = wait(reduce(comm, x, 1));
      EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
      const std::string root_is = rooted.root_reads ? "to rank " : "from rank ";
      for (const std::string& words :
           {std::string("differs between ranks"), "called " + std::string(rooted.name),
            root_is + "0", root_is + "1"})
        EXPECT_NE(status.message().find(words), std::string::npos)
            << words << " not in: " << status.message();
    });
}

/// Two pairs of ranks, each with a root of its own: in each, one only sends and one only reads.
TEST_P(OneWayMismatches, of_two_groups_are_told_in_the_next_call) {
  const RootedCall& rooted = kRooted[std::get<0>(GetParam())];
  const Environment env(
      Environment::Variables{{"ANYCCL_TRANSPORT", std::get<1>(GetParam())},
                             {"ANYCCL_ALGO", std::get<0>(GetParam()) < 4 ? "flat" : ""}});
  run_ranks(4, [&](Communicator& comm) {
    std::vector<float> x(16, 1.0F);
    ASSERT_OK(wait(comm.barrier()));
    Status status = wait(rooted.call(comm, x, Rank{index(comm.rank()) / 2 * 2}));
    if (status.ok()) status = wait(comm.barrier());
    EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
    EXPECT_NE(status.message().find("differs between ranks"), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find("rank 0"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
  });
}
INSTANTIATE_TEST_SUITE_P(All, OneWayMismatches,
                         testing::Combine(testing::Range(0, 6), testing::Values("loopback", "tcp")),
                         [](const auto& test) {
                           return std::string(kRooted[std::get<0>(test.param)].name) + "_over_" +
                                  std::get<1>(test.param);
                         });

/// Rank 0 sends to all, and the others send to it: nobody reads anything.
TEST(Mismatch, of_collectives_that_only_send_is_told_in_the_next_call) {
  for (const char* transport : {"loopback", "tcp"}) {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
    run_ranks(2, [](Communicator& comm) {
      std::vector<float> x(16, 1.0F);
      ASSERT_OK(wait(comm.barrier()));
      Status status =
          wait(comm.rank() == Rank{0} ? comm.broadcast(one(x), one(x), Rank{0})
                                      : comm.reduce(one(x), one(x, 9), ReduceOp::sum, Rank{0}));
      if (status.ok()) status = wait(comm.barrier());
      EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
      EXPECT_NE(status.message().find("called broadcast"), std::string::npos) << status.message();
      EXPECT_NE(status.message().find("called reduce"), std::string::npos) << status.message();
    });
  }
}

TEST(Mismatch, of_pair_counts_names_both) {
  for (const char* transport : {"loopback", "tcp"}) {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
    run_ranks(2, [](Communicator& comm) {
      std::vector<float> x(1000), y(1000);
      const bool liar = comm.rank() == Rank{0};
      const std::vector<std::size_t> sent = {3, liar ? 100UL : 3UL}, received = {3, 3},
                                     at = {0, 500};
      Status status = wait(comm.all_to_all_v(view(x), {sent, at}, view(y), {received, at}));
      if (status.ok()) status = wait(comm.barrier());
      EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
      EXPECT_NE(status.message().find("400"), std::string::npos) << status.message();
      EXPECT_NE(status.message().find("12"), std::string::npos) << status.message();
    });
  }
}

/// The root expects 100 elements of rank 1, which sends 3.
TEST(Mismatch, of_gathered_counts_names_both) {
  for (const char* transport : {"loopback", "tcp"}) {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
    run_ranks(2, [](Communicator& comm) {
      std::vector<float> x(3), y(200);
      const std::vector<std::size_t> counts = {3, 100}, at = {0, 100};
      Status status = wait(comm.gather_v(view(x), view(y), {counts, at}, Rank{0}));
      if (status.ok()) status = wait(comm.barrier());
      EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
      EXPECT_NE(status.message().find("400"), std::string::npos) << status.message();
      EXPECT_NE(status.message().find("12"), std::string::npos) << status.message();
    });
  }
}

/// The same sum of counts, otherwise distributed.
TEST(Mismatch, of_counts_that_all_should_know_is_an_error_of_all) {
  for (const char* transport : {"loopback", "tcp"}) {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
    run_ranks(3, [](Communicator& comm) {
      const std::size_t more = comm.rank() == Rank{2} ? 1 : 0;
      const std::vector<std::size_t> counts = {4 + more, 4 - more, 3}, at = {0, 10, 20};
      std::vector<float> x(counts[static_cast<std::size_t>(comm.rank())]), y(30);
      const Status status = wait(comm.all_gather_v(view(x), view(y), {counts, at}));
      EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
      EXPECT_NE(status.message().find("other counts"), std::string::npos) << status.message();
    });
  }
}

TEST(Mismatch, of_tuner_tables_is_an_error_of_all) {
  std::string files[2];
  for (int r = 0; r < 2; ++r) {
    files[r] =
        testing::TempDir() + "anyccl_table_" + std::to_string(::getpid()) + std::to_string(r);
    std::ofstream(files[r]) << R"([{"algorithm":"all_reduce/ring","protocol":"Simple","ranks":2,)"
                            << R"("transport":"shm","inplace":false,"bytes":8,"median_us":)"
                            << r + 1 << "}]";
  }
  const auto run_with = [&](int second) {
    return run_processes(
        2, [](Communicator& comm) { ASSERT_OK(wait(comm.barrier())); },
        [&](int r) {
          return std::vector<std::pair<std::string, std::string>>{
              {"ANYCCL_TUNER_TABLE", files[r == 0 ? 0 : second]}};
        });
  };
  expect_all_passed(run_with(0));
  for (const Outcome& outcome : run_with(1)) {
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_NE(outcome.output.find("ANYCCL_TUNER_TABLE"), std::string::npos) << outcome.output;
  }
  for (const std::string& file : files) ::unlink(file.c_str());
}

TEST(Mismatch, of_message_sizes_names_both) {
  for (const char* transport : {"loopback", "tcp"}) {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
    run_ranks(2, [](Communicator& comm) {
      std::vector<float> x(100);
      Status status = comm.rank() == Rank{0}
                          ? wait(comm.send(View{x.data(), 10, DType::f32}, Rank{1}))
                          : wait(comm.recv(View{x.data(), 20, DType::f32}, Rank{0}));
      if (status.ok()) status = wait(comm.barrier());
      EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
      EXPECT_NE(status.message().find("40"), std::string::npos) << status.message();
      EXPECT_NE(status.message().find("80"), std::string::npos) << status.message();
    });
  }
}

TEST(Mismatch, of_a_receive_and_a_collective_ends_at_the_time_limit_and_names_who_is_waited_for) {
  run_ranks(2, [](Communicator& comm) {
    comm.set_timeout(std::chrono::milliseconds(200));
    std::vector<float> x{1};
    const Status status = comm.rank() == Rank{0}
                              ? wait(comm.all_reduce(view(x), view(x), ReduceOp::sum))
                              : wait(comm.recv(view(x), Rank{0}));
    EXPECT_EQ(status.code(), Code::timeout) << status.message();
    EXPECT_NE(status.message().find("waits for rank"), std::string::npos) << status.message();
  });
}

/// Waits until the process whose number comes to be in `pid` has ended.
void await_end(const std::atomic<pid_t>& pid) {
  while (pid == 0) std::this_thread::yield();
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid.load(), 0));
  pollfd end{process, POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 20000), 1);
  ::close(process);
}

/// Also of the rank that comes when the group has failed already.
TEST(Mismatch, of_algorithms_is_an_error_of_all) {
  void* shared = ::mmap(nullptr, sizeof(std::atomic<pid_t>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& of_rank_1 = *new (shared) std::atomic<pid_t>(0);
  const auto outcomes = run_processes(
      3, [](Communicator& comm) { ASSERT_OK(wait(comm.barrier())); },
      [&](int r) {
        if (r == 1) of_rank_1 = ::getpid();
        if (r == 2) await_end(of_rank_1);
        return std::vector<std::pair<std::string, std::string>>{
            {"ANYCCL_ALGO", r == 1 ? "pipelined_tree" : "flat"}};
      });
  for (const Outcome& o : outcomes) {
    EXPECT_EQ(o.exit_code, 3) << o.output;
    EXPECT_NE(o.output.find("pipelined_tree"), std::string::npos) << o.output;
    EXPECT_NE(o.output.find("flat"), std::string::npos) << o.output;
  }
}

}  // namespace
}  // namespace anyccl::test
