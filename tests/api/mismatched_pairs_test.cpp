// Ranks that make different calls: each collective against each other one, and messages that do not
// fit.

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// By their numbers in the C interface; empty: no collective.
constexpr std::array<const char*, anycclNumCollectives> kNames = {
    "all_reduce",   "broadcast",        "all_to_all_v", "barrier",   "",        "",
    "reduce",       "reduce_scatter",   "all_gather",   "gather",    "scatter", "all_to_all",
    "all_gather_v", "reduce_scatter_v", "gather_v",     "scatter_v", "scan",    "exscan"};

bool is_collective(int number) {
  return *kNames[static_cast<std::size_t>(number)] != '\0';
}

constexpr std::size_t kMostRanks = 3;

/// Any collective, with blocks of `block` elements, and what it needs of memory.
class AnyCall {
 public:
  AnyCall(int ranks, std::size_t block) : block_(block), in_(kMostRanks * block), out_(in_) {
    for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
      counts_[r] = block;
      places_[r] = r * block;
    }
  }
  Status run(Communicator& comm, int collective) {
    anycclCall_t call = call_of(static_cast<anycclCollective_t>(collective), in_, 0);
    call.recvbuff = out_.data();
    call.count = block_;
    call.sendcounts = call.recvcounts = counts_.data();
    call.sdispls = call.rdispls = places_.data();
    return wait(comm.issue(call));
  }

 private:
  std::size_t block_;
  std::vector<float> in_, out_;
  std::array<std::size_t, kMostRanks> counts_{}, places_{};
};

std::string called(int collective) {
  return std::string("called ") + kNames[static_cast<std::size_t>(collective)] +
         (collective == anycclCollBarrier ? "" : " of");
}

/// In a communicator of their own: rank 1 makes another call than the others. Who only gives hears
/// of it in the next one.
void expect_both_calls(Communicator& world, int one, int other, std::size_t block) {
  const bool is_other = world.rank() == Rank{1};
  Communicator comm;
  ASSERT_OK(world.split_into(comm, 0, 0));
  AnyCall call(comm.size(), block);
  Status status = call.run(comm, is_other ? other : one);
  if (status.ok()) status = wait(comm.barrier());
  EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
  for (const std::string& words :
       {std::string("differs between ranks"), called(one), called(other)})
    EXPECT_NE(status.message().find(words), std::string::npos)
        << words << " not in: " << status.message() << "; rank " << index(comm.rank()) << " of "
        << comm.size() << ", " << called(one) << " and " << called(other) << ", blocks of "
        << block;
}

struct Where {
  const char* transport;
  int ranks;
  std::size_t block;  ///< Elements.
};
class Pairs : public testing::TestWithParam<Where> {};

/// All pairs but of equals; of the two orders of a pair that which `ranks` picks.
std::vector<std::pair<int, int>> pairs_for(int ranks) {
  std::vector<std::pair<int, int>> pairs;
  for (int one = 0; one < anycclNumCollectives; ++one)
    for (int other = 0; other < one; ++other)
      if (is_collective(one) && is_collective(other))
        pairs.emplace_back((one + other + ranks) % 2 == 0 ? std::pair(one, other)
                                                          : std::pair(other, one));
  return pairs;
}

/// Several groups at a time, as each error takes a while to be certain.
TEST_P(Pairs, of_collectives_give_every_rank_both_calls) {
  const Where& where = GetParam();
  const Environment env(
      Environment::Variables{{"ANYCCL_TRANSPORT", where.transport}, {"ANYCCL_OP_TIMEOUT", "30"}});
  const auto pairs = pairs_for(where.ranks);
  constexpr std::size_t kGroups = 8;
  std::vector<std::thread> groups;
  for (std::size_t g = 0; g < kGroups; ++g)
    groups.emplace_back([&, g] {
      run_ranks(where.ranks, [&](Communicator& world) {
        for (std::size_t i = g; i < pairs.size(); i += kGroups)
          expect_both_calls(world, pairs[i].first, pairs[i].second, where.block);
      });
    });
  for (std::thread& group : groups) group.join();
}
INSTANTIATE_TEST_SUITE_P(All, Pairs,
                         testing::Values(Where{"shm", 2, 2}, Where{"shm", 3, 40000},
                                         Where{"tcp", 2, 40000}, Where{"tcp", 3, 2}),
                         [](const auto& test) {
                           return std::string(test.param.transport) + "_" +
                                  std::to_string(test.param.ranks) + "_ranks_blocks_of_" +
                                  std::to_string(test.param.block);
                         });

class Messages : public testing::TestWithParam<const char*> {
 protected:
  /// Rank 0 makes one call and rank 1 another one; what comes of both, and of a barrier behind
  /// those that succeed.
  static std::array<Status, 2> after(const std::function<Status(Communicator&)>& by_rank_0,
                                     const std::function<Status(Communicator&)>& by_rank_1,
                                     const char* limit_s = "20") {
    const Environment env(
        Environment::Variables{{"ANYCCL_TRANSPORT", GetParam()}, {"ANYCCL_OP_TIMEOUT", limit_s}});
    std::array<Status, 2> statuses;
    run_ranks(2, [&](Communicator& comm) {
      Status status = comm.rank() == Rank{0} ? by_rank_0(comm) : by_rank_1(comm);
      if (status.ok()) status = wait(comm.barrier());
      statuses[static_cast<std::size_t>(comm.rank())] = std::move(status);
    });
    return statuses;
  }
};

void expect_words(const Status& status, const std::vector<std::string>& all_words) {
  for (const std::string& words : all_words)
    EXPECT_NE(status.message().find(words), std::string::npos)
        << words << " not in: " << status.message();
}

void expect(const Status& status, Code code, const std::vector<std::string>& all_words) {
  EXPECT_EQ(status.code(), code) << status.message();
  expect_words(status, all_words);
}

TEST_P(Messages, of_as_many_bytes_and_another_type_name_both_ranks) {
  for (const std::size_t count : {std::size_t{4}, std::size_t{1} << 18}) {
    std::vector<float> sent(count), received(count);
    const auto statuses =
        after([&](Communicator& comm) { return wait(comm.send(view(sent), Rank{1})); },
              [&](Communicator& comm) {
                return wait(comm.recv(View{received.data(), count, DType::i32}, Rank{0}));
              });
    for (const Status& status : statuses)
      expect(status, Code::invalid_usage,
             {fmt::format("rank 0 sends {0} f32 where rank 1 receives {0} i32", count)});
  }
}

/// Each waits for the other one, as both may call what fits later: who is first at its limit says
/// so.
TEST_P(Messages, of_another_tag_are_waited_for_and_both_ranks_are_named) {
  std::vector<float> x(1), y(1);
  const auto statuses =
      after([&](Communicator& comm) { return wait(ssend(comm, view(x), Rank{1}, {}, 5)); },
            [&](Communicator& comm) { return wait(comm.recv(view(y), Rank{0}, {}, 6)); }, "0.3");
  for (const Status& status : statuses) {
    EXPECT_TRUE(status.code() == Code::timeout || status.code() == Code::remote_error)
        << status.message();
    expect_words(status, {"timeout after 300 ms", "rank 0", "rank 1", " of 1 f32 with tag "});
  }
}

TEST_P(Messages, in_groups_name_both_sizes) {
  std::vector<float> x(30);
  const auto exchange = [&](std::size_t sent) {
    return [&, sent](Communicator& comm) {
      const Rank other{1 - index(comm.rank())};
      std::vector<float> in(30);
      return group([&] {
        static_cast<void>(comm.send(View{x.data(), sent, DType::f32}, other));
        static_cast<void>(comm.recv(View{in.data(), 10, DType::f32}, other));
      });
    };
  };
  for (const Status& status : after(exchange(10), exchange(20)))
    expect(status, Code::invalid_usage, {"80", "40"});
}

TEST_P(Messages, and_collectives_of_groups_name_both_calls) {
  const auto two = [](bool broadcasts) {
    return [broadcasts](Communicator& comm) {
      std::vector<float> x(4), y(4);
      return group([&] {
        static_cast<void>(comm.all_reduce(view(x), view(x), ReduceOp::sum));
        static_cast<void>(broadcasts ? comm.broadcast(view(y), view(y), Rank{0})
                                     : comm.all_reduce(view(y), view(y), ReduceOp::sum));
      });
    };
  };
  for (const Status& status : after(two(false), two(true)))
    expect(status, Code::invalid_usage, {"differs between ranks"});
}
INSTANTIATE_TEST_SUITE_P(All, Messages, testing::Values("shm", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace anyccl::test
