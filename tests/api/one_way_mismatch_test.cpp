// A rank that only gives is through with its call before anybody reads: if the call differs from
// those of its peers, it hears of that in its next one.

#include <barrier>
#include <chrono>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

constexpr std::size_t kElements = 4;
const std::vector<std::size_t> kCounts = {2, 2}, kPlaces = {0, 2};

/// A rooted call of two ranks, as the first half of its name says.
struct Rooted {
  const char* name;
  Result<Work> (*call)(Communicator&, std::vector<float>&, Rank root);
  bool root_gives;  ///< Else the other rank does.

  bool gives(Rank rank, Rank root) const { return (rank == root) == root_gives; }
};
View half(std::vector<float>& x, std::size_t at) {
  return {x.data() + at, kElements / 2, DType::f32};
}
View whole(std::vector<float>& x) {
  return {x.data(), kElements, DType::f32};
}
const BlockLayout kLayout = {{kCounts.data(), 2}, {kPlaces.data(), 2}};
const Rooted kRooted[] = {
    {"broadcast", [](auto& c, auto& x, Rank r) { return c.broadcast(half(x, 0), half(x, 0), r); },
     true},
    {"reduce",
     [](auto& c, auto& x, Rank r) { return c.reduce(half(x, 0), half(x, 4), ReduceOp::sum, r); },
     false},
    {"gather", [](auto& c, auto& x, Rank r) { return c.gather(half(x, 6), whole(x), r); }, false},
    {"scatter", [](auto& c, auto& x, Rank r) { return c.scatter(whole(x), half(x, 6), r); }, true},
    {"gather_v",
     [](auto& c, auto& x, Rank r) { return c.gather_v(half(x, 6), whole(x), kLayout, r); }, false},
    {"scatter_v",
     [](auto& c, auto& x, Rank r) { return c.scatter_v(whole(x), kLayout, half(x, 6), r); }, true},
};

enum class Next { the_same, barrier, group, finalize, destroy };
constexpr Next kNexts[] = {Next::the_same, Next::barrier, Next::group, Next::finalize,
                           Next::destroy};

/// The other rank may have come to its call only just now, and calls that follow each other within
/// 100 us do not look each time.
Status give_again(const Rooted& rooted, Communicator& comm, std::vector<float>& x, Rank root) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return wait(rooted.call(comm, x, root));
}

Status go_on(Next next, const Rooted& rooted, Communicator& comm, std::vector<float>& x,
             Rank root) {
  switch (next) {
    case Next::the_same:
      return give_again(rooted, comm, x, root);
    case Next::barrier:
      return wait(comm.barrier());
    case Next::group: {
      EXPECT_EQ(anycclGroupStart(), anycclSuccess);
      for (int i = 0; i < 2; ++i) EXPECT_EQ(anycclBarrier(comm.handle(), nullptr), anycclSuccess);
      const anycclResult_t result = anycclGroupEnd();
      return Status(static_cast<Code>(result), anycclGetLastError(nullptr));
    }
    case Next::finalize:
      return comm.finalize();
    case Next::destroy:
      return comm.destroy();
  }
  return {};
}

void expect_difference(const Status& status, const char* one, const char* other,
                       const std::string& when = "") {
  EXPECT_EQ(status.code(), Code::invalid_usage) << status.message() << when;
  for (const std::string& words : {std::string("differs between ranks"),
                                   "called " + std::string(one), "called " + std::string(other)})
    EXPECT_NE(status.message().find(words), std::string::npos)
        << words << " not in: " << status.message() << when;
}

/// The root at which this rank only gives.
Rank giving_root(const Rooted& rooted, Rank rank) {
  return rooted.root_gives ? rank : Rank{1 - index(rank)};
}

class OneWay : public testing::TestWithParam<std::tuple<int, std::string>> {};

/// Rank 0 only gives; rank 1 makes another call, and rank 0 makes its next one when that one is
/// through.
TEST_P(OneWay, mismatch_is_told_in_the_next_call) {
  const Rooted& given = kRooted[std::get<0>(GetParam())];
  const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", std::get<1>(GetParam())},
                                               {"ANYCCL_OP_TIMEOUT", "30"}});
  const Rank root = giving_root(given, Rank{0});
  auto pair = static_cast<std::size_t>(std::get<0>(GetParam()));
  for (const Rooted& other : kRooted)
    for (const Rank other_root : {Rank{0}, Rank{1}}) {
      if (&other == &given && other_root == root) continue;
      const bool both_give = other.gives(Rank{1}, other_root);
      const Next next =
          kNexts[pair++ % std::size(kNexts)];  // in turn: each comes with each kind of pair
      const std::string when = std::string("; against ") + other.name + " with root " +
                               std::to_string(index(other_root)) + ", then " +
                               std::to_string(static_cast<int>(next));
      std::barrier step(2);
      run_ranks(2, [&](Communicator& comm) {
        std::vector<float> x(16, 1.0F);
        EXPECT_OK(wait(comm.barrier()));
        const bool is_giver = comm.rank() == Rank{0};
        const Rooted& mine = is_giver ? given : other;
        Status status = wait(mine.call(comm, x, is_giver ? root : other_root));
        EXPECT_TRUE(is_giver || both_give || !status.ok());
        step.arrive_and_wait();
        if (status.ok()) status = go_on(next, mine, comm, x, is_giver ? root : other_root);
        expect_difference(status, given.name, other.name,
                          when + ", at rank " + std::to_string(index(comm.rank())));
        step.arrive_and_wait();  // who is destroyed last looks at one that is still there
      });
    }
}

/// The rank that reads does not wait for the other's next call.
TEST_P(OneWay, mismatch_is_told_to_a_reader_at_once) {
  const Rooted& given = kRooted[std::get<0>(GetParam())];
  const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", std::get<1>(GetParam())}});
  for (const std::size_t elements : {std::size_t{2}, std::size_t{1} << 20}) {
    std::barrier step(2);
    run_ranks(2, [&](Communicator& comm) {
      std::vector<float> x(16 + elements, 1.0F);
      EXPECT_OK(wait(comm.barrier()));
      if (comm.rank() == Rank{0}) {
        EXPECT_OK(wait(given.call(comm, x, giving_root(given, Rank{0}))));
      } else {
        const auto before = std::chrono::steady_clock::now();
        const View part{x.data(), elements, DType::f32};
        expect_difference(wait(comm.all_reduce(part, part, ReduceOp::sum)), given.name,
                          "all_reduce");
        EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
      }
      step.arrive_and_wait();
    });
  }
}

/// As often as it likes: no rank looks at what others send.
TEST_P(OneWay, calls_that_match_go_on) {
  const Rooted& given = kRooted[std::get<0>(GetParam())];
  const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", std::get<1>(GetParam())}});
  run_ranks(3, [&](Communicator& comm) {
    Communicator pair;
    EXPECT_OK(comm.split_into(pair, comm.rank() == Rank{2} ? 1 : 0, index(comm.rank())));
    if (pair.size() == 2)
      for (int i = 0; i < 2000; ++i) {
        std::vector<float> x(16, 1.0F);
        const Status status = wait(given.call(pair, x, giving_root(given, Rank{0})));
        ASSERT_OK(status);
      }
    EXPECT_OK(pair.finalize());
  });
}
INSTANTIATE_TEST_SUITE_P(All, OneWay,
                         testing::Combine(testing::Range(0, 6),
                                          testing::Values("loopback", "unix", "tcp")),
                         [](const auto& test) {
                           return std::string(kRooted[std::get<0>(test.param)].name) + "_over_" +
                                  std::get<1>(test.param);
                         });

TEST(OneWayMismatch, of_a_message_and_a_collective_is_told_in_the_next_collective) {
  for (const char* transport : {"loopback", "unix", "tcp"}) {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
    run_ranks(2, [](Communicator& comm) {
      std::vector<float> x(16, 1.0F);
      if (comm.rank() == Rank{0}) {
        EXPECT_OK(wait(comm.send(half(x, 0), Rank{1})));
        expect_difference(wait(comm.barrier()), "barrier", "broadcast");
      } else {
        expect_difference(wait(comm.broadcast(half(x, 0), half(x, 0), Rank{0})), "barrier",
                          "broadcast");
      }
    });
  }
}

}  // namespace
}  // namespace anyccl::test
