// Groups of the C++ interface.

#include <array>
#include <stdexcept>

#include "multirank/cpp/expect.hpp"

namespace anyccl::test {
namespace {

using Ints = std::vector<int>;

TEST(CppGroup, exchanges_by_blocking_calls) {
  run_ranks(3, [](Communicator& comm) {
    const int me = index(comm.rank()), n = comm.size();
    std::vector<Ints> out(3, Ints(50000, me)), in(3, Ints(50000, -1));
    expect_group([&] {
      for (int r = 0; r < n; ++r) {
        const auto i = static_cast<std::size_t>(r);
        EXPECT_OK(comm.send(out[i], Rank{r}).status());
        EXPECT_OK(comm.recv(in[i], Rank{r}).status());
      }
    });
    for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(in[r], Ints(50000, static_cast<int>(r)));
  });
}

TEST(CppGroup, runs_all_ranks_from_one_thread_and_a_group_in_it_is_part_of_it) {
  auto comms = Communicator::init_all(3);
  ASSERT_TRUE(comms.ok()) << comms.status().message();
  std::vector<Ints> x(3, Ints(1000, 2)), y(3, Ints(3000));
  expect_group([&] {
    for (std::size_t r = 0; r < 3; ++r)
      EXPECT_OK((*comms)[r].all_reduce(x[r], x[r], ReduceOp::sum).status());
    return group([&] {
      for (std::size_t r = 0; r < 3; ++r)
        EXPECT_OK((*comms)[r].broadcast(y[r], y[r], Rank{0}).status());
    });
  });
  for (const Ints& result : x) EXPECT_EQ(result, Ints(1000, 6));
}

TEST(CppGroup, gives_empty_works_of_which_nothing_can_be_asked) {
  run_ranks(2, [](Communicator& comm) {
    Ints x(10, 1);
    Work work;
    expect_group([&] {
      auto called = comm.all_reduce(x, x, ReduceOp::sum);
      EXPECT_OK(called.status());
      work = *std::move(called);
      EXPECT_EQ(x, Ints(10, 1)) << "nothing starts before the end";
    });
    EXPECT_EQ(x, Ints(10, 2));
    EXPECT_EQ(work.handle(), nullptr);
    EXPECT_REFUSED(work.wait(), Code::invalid_argument, "work is NULL");
  });
}

/// An error that is found before the library is called ends the group like any other.
TEST(CppGroup, starts_nothing_after_an_error_wherever_it_is_found) {
  run_ranks(2, [](Communicator& comm) {
    const Rank peer{1 - index(comm.rank())};
    Ints x(4, 7), y(3);
    const auto first = group([&] {
      EXPECT_OK(comm.send(x, peer).status());
      EXPECT_FALSE(comm.all_reduce(x, y, ReduceOp::sum).ok());
    });
    EXPECT_REFUSED(first, Code::invalid_argument, "4 i32 and the result 3 i32");
    const auto second = group([&] {
      EXPECT_OK(comm.send(x, peer).status());
      EXPECT_FALSE(comm.send(x, peer, {}, -3).ok());
    });
    EXPECT_REFUSED(second, Code::invalid_argument, "tag -3");
    const auto inner = group([&] {
      EXPECT_OK(comm.send(x, peer).status());
      EXPECT_FALSE(group([&] { return comm.all_reduce(x, y, ReduceOp::sum).status(); }).ok());
    });
    EXPECT_REFUSED(inner, Code::invalid_argument, "4 i32 and the result 3 i32");
    const auto of_another_header = group([&] {
      EXPECT_OK(comm.send(x, peer).status());
      std::vector<float> residual(4), momentum(3);
      EXPECT_FALSE(sparse::pack(residual, momentum, {}).ok());
    });
    EXPECT_REFUSED(of_another_header, Code::invalid_argument, "momentum has 3 elements");
    expect_group([&] {  // the first message that there is is this one
      x.assign(4, 8);
      EXPECT_OK(comm.send(x, peer).status());
      y.resize(4);
      EXPECT_OK(comm.recv(y, peer).status());
    });
    EXPECT_EQ(y, Ints(4, 8));
  });
}

TEST(CppGroup, ends_with_what_its_function_returns_or_throws) {
  run_ranks(2, [](Communicator& comm) {
    Ints x(4, 1);
    const auto own = group([&] {
      EXPECT_OK(comm.all_reduce(x, x, ReduceOp::sum).status());
      return Status(Code::unsupported, "the program says no");
    });
    EXPECT_REFUSED(own, Code::unsupported, "says no");
    EXPECT_THROW(static_cast<void>(group([&] {
                   EXPECT_OK(comm.all_reduce(x, x, ReduceOp::sum).status());
                   throw std::runtime_error("mine");
                 })),
                 std::runtime_error);
    const auto outer = group([&] {
      EXPECT_THROW(static_cast<void>(group([&] {
                     EXPECT_OK(comm.all_reduce(x, x, ReduceOp::sum).status());
                     throw std::runtime_error("mine");
                   })),
                   std::runtime_error);
    });
    EXPECT_REFUSED(outer, Code::invalid_usage, "ended by an exception");
    EXPECT_EQ(x, Ints(4, 1)) << "nothing ran";
    ASSERT_OK(wait(comm.all_reduce(x, x, ReduceOp::sum)));
    EXPECT_EQ(x, Ints(4, 2)) << "and no group is open";
  });
}

TEST(CppGroup, creates_and_splits_several_ranks_in_one_thread) {
  const auto id = UniqueId::create();
  ASSERT_TRUE(id.ok());
  std::array<Communicator, 4> world, halves, stages;
  expect_group([&] {
    for (int r = 0; r < 4; ++r) EXPECT_OK(world[static_cast<std::size_t>(r)].join(*id, Rank{r}, 4));
  });
  const auto grids = [&] {
    std::vector<Grid> all;
    for (Communicator& comm : world) {
      auto grid = Grid::create(comm, {{"stage", 2}, {"tensor", 2}});
      EXPECT_OK(grid.status());
      all.push_back(*std::move(grid));
    }
    return all;
  }();
  expect_group([&] {
    for (std::size_t r = 0; r < 4; ++r) {
      EXPECT_OK(world[r].split_into(halves[r], static_cast<int>(r) % 2, 0));
      EXPECT_OK(grids[r].split_into(stages[r], world[r], {"stage"}));
    }
  });
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(world[r].rank(), Rank{static_cast<int>(r)});
    EXPECT_EQ(halves[r].size(), 2);
    EXPECT_EQ(stages[r].rank(), Rank{static_cast<int>(r) / 2});
  }
  EXPECT_REFUSED(world[0].split_into(halves[0], 0, 0), Code::invalid_usage,
                 "split_into: the object is a communicator already");
}

TEST(CppGroup, refuses_what_gives_a_value_that_is_not_there_yet) {
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  Communicator& comm = (*comms)[0];
  EXPECT_REFUSED(group([&] { EXPECT_FALSE(comm.split(0, 0).ok()); }), Code::invalid_usage,
                 "split: there is no value before the group ends; split_into() can");
  EXPECT_REFUSED(group([&] { EXPECT_FALSE(Communicator::from_unique_id({}, Rank{0}, 1).ok()); }),
                 Code::invalid_usage, "join() can");
  EXPECT_REFUSED(group([&] { EXPECT_FALSE(comm.issue_all({}).ok()); }), Code::invalid_usage,
                 "issue_all");
}

TEST(CppGroup, is_simulated_and_runs_nothing_then) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(std::size_t{1} << 20, 1);
    const auto time = [&](std::size_t count) {
      const auto us = simulate_group([&] {
        const std::span<float> part(x.data(), count);
        EXPECT_OK(comm.all_reduce(part, part, ReduceOp::sum).status());
      });
      EXPECT_OK(us.status());
      return us.ok() ? *us : 0;
    };
    EXPECT_GT(time(2), 0);
    EXPECT_GT(time(x.size()), 10 * time(2));
    EXPECT_EQ(x[0], 1);
    EXPECT_REFUSED(simulate_group([&] { return comm.send(x, Rank{9}).status(); }).status(),
                   Code::invalid_argument, "peer");
    const auto inside = group([&] { EXPECT_FALSE(simulate_group([] {}).ok()); });
    EXPECT_REFUSED(inside, Code::invalid_usage, "not inside a group");
    ASSERT_OK(wait(comm.barrier()));
  });
}

}  // namespace
}  // namespace anyccl::test
