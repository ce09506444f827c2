// Several communicators, splits, groups and works, with ranks as threads.

#include <algorithm>
#include <atomic>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

TEST(Split, gives_groups_ordered_by_key) {
  run_ranks(5, [](Communicator& comm) {
    const int me = index(comm.rank());
    auto part = comm.split(me % 2, -me);  // reversed
    ASSERT_TRUE(part.ok()) << part.status().message();
    EXPECT_EQ(part->size(), me % 2 == 0 ? 3 : 2);
    EXPECT_EQ(index(part->rank()), me % 2 == 0 ? (4 - me) / 2 : (3 - me) / 2);
    std::vector<float> x(1000, static_cast<float>(me));
    ASSERT_OK(wait(part->all_reduce(view(x), view(x), ReduceOp::sum)));
    EXPECT_EQ(x[999], me % 2 == 0 ? 6.0F : 4.0F);
    ASSERT_OK(wait(comm.barrier()));
  });
}

TEST(Split, leaves_out_who_has_no_color) {
  run_ranks(3, [](Communicator& comm) {
    auto part = comm.split(comm.rank() == Rank{1} ? ANYCCL_SPLIT_NOCOLOR : 7, 0);
    ASSERT_TRUE(part.ok()) << part.status().message();
    EXPECT_EQ(part->handle() == nullptr, comm.rank() == Rank{1});
    if (part->handle() == nullptr) return;
    EXPECT_EQ(part->size(), 2);
  });
}

TEST(Split, fails_everywhere_if_one_rank_asks_for_nonsense) {
  run_ranks(3, [](Communicator& comm) {
    const auto part = comm.split(comm.rank() == Rank{2} ? -5 : 0, 0);
    ASSERT_FALSE(part.ok());
    EXPECT_NE(part.status().message().find("color -5"), std::string::npos)
        << part.status().message();
    ASSERT_OK(wait(comm.barrier()));  // the communicator itself is fine
  });
}

/// Two threads per rank use two communicators in opposite orders.
TEST(Communicators, do_not_wait_for_each_other) {
  run_ranks(2, [](Communicator& a) {
    auto made = a.split(0, index(a.rank()));
    ASSERT_TRUE(made.ok()) << made.status().message();
    Communicator& b = *made;
    const auto use = [](Communicator& comm, int salt) {
      for (int i = 0; i < 200; ++i) {
        std::vector<float> x(static_cast<std::size_t>(1 + (i * 37) % 3000),
                             static_cast<float>(salt + i));
        ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
        ASSERT_EQ(x[0], 2.0F * static_cast<float>(salt + i));
      }
    };
    // Rank 0 starts with a, rank 1 with b; each order ends only when the other thread has begun.
    Communicator* first = a.rank() == Rank{0} ? &a : &b;
    Communicator* second = a.rank() == Rank{0} ? &b : &a;
    std::thread one([&] { use(*first, first == &a ? 1000 : 2000); });
    std::thread two([&] { use(*second, second == &a ? 1000 : 2000); });
    one.join();
    two.join();
  });
}

struct SharedLinks : testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(transports, SharedLinks, testing::Values("loopback", "unix", "tcp"),
                         [](const auto& tested) { return tested.param; });

TEST_P(SharedLinks, carry_several_communicators_at_the_same_time) {
  const Environment environment({{"ANYCCL_TRANSPORT", GetParam()}});
  run_ranks(3, [](Communicator& world) {
    const int me = index(world.rank());
    std::vector<Communicator> parts;
    for (int i = 0; i < 3; ++i) {
      auto made = world.split(0, me);
      ASSERT_TRUE(made.ok()) << made.status().message();
      parts.push_back(std::move(*made));
    }
    std::vector<std::thread> threads;
    for (std::size_t p = 0; p < parts.size(); ++p)
      threads.emplace_back([&, p] {
        for (std::size_t i = 0; i < 60; ++i) {
          const std::size_t count = 1 + (i * 7919 * (p + 1)) % (i % 7 == 0 ? 200'000 : 3'000);
          std::vector<float> x(count, static_cast<float>(me + 1));
          ASSERT_OK(wait(parts[p].all_reduce(view(x), view(x), ReduceOp::sum)));
          ASSERT_EQ(x[0], 6.0F);
          ASSERT_EQ(x[count - 1], 6.0F);
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(Group, exchanges_without_waiting_for_each_other) {
  run_ranks(4, [](Communicator& comm) {
    const int n = comm.size(), me = index(comm.rank());
    for (const std::size_t count : {1UL, 100000UL, 1000000UL}) {
      std::vector<std::vector<std::int64_t>> out(static_cast<std::size_t>(n)),
          in(static_cast<std::size_t>(n));
      ASSERT_EQ(anycclGroupStart(), anycclSuccess);
      for (int r = 0; r < n; ++r) {
        auto& to = out[static_cast<std::size_t>(r)];
        auto& from = in[static_cast<std::size_t>(r)];
        to.assign(count, me * 10 + r);
        from.assign(count, -1);
        EXPECT_EQ(anycclSend(to.data(), count, anycclInt64, r, comm.handle(), nullptr),
                  anycclSuccess);
        EXPECT_EQ(anycclRecv(from.data(), count, anycclInt64, r, comm.handle(), nullptr),
                  anycclSuccess);
      }
      ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
      for (int r = 0; r < n; ++r) {
        EXPECT_EQ(in[static_cast<std::size_t>(r)].front(), r * 10 + me);
        EXPECT_EQ(in[static_cast<std::size_t>(r)].back(), r * 10 + me);
      }
    }
  });
}

/// NCCL's classic: one thread owns all ranks.
TEST(Group, runs_all_ranks_of_a_communicator_from_one_thread) {
  auto comms = Communicator::init_all(4);
  ASSERT_TRUE(comms.ok()) << comms.status().message();
  std::vector<std::vector<float>> x(4, std::vector<float>(50000, 2.0F));
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  for (std::size_t r = 0; r < 4; ++r)
    ASSERT_EQ(anycclAllReduce(x[r].data(), x[r].data(), x[r].size(), anycclFloat32, anycclSum,
                              (*comms)[r].handle(), nullptr),
              anycclSuccess);
  ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
  for (const auto& result : x) EXPECT_EQ(result.back(), 8.0F);
}

/// Without a group the first call waits for the others, which this thread never makes.
TEST(Group, is_advised_to_a_thread_that_calls_for_several_ranks_without_one) {
  auto comms = Communicator::init_all(2);
  ASSERT_TRUE(comms.ok()) << comms.status().message();
  float x = 1;
  anycclCall_t call{};
  call.size = sizeof call;
  call.sendbuff = call.recvbuff = &x;
  call.count = 1;
  call.datatype = anycclFloat32;
  call.timeout_ms = 100;
  ASSERT_NE(anycclRun(&call, (*comms)[0].handle()), anycclSuccess);
  const std::string text = anycclGetLastError((*comms)[0].handle());
  EXPECT_NE(text.find("a thread that calls for several ranks of its process does so in a group"),
            std::string::npos)
      << text;
}

TEST(Group, creates_several_ranks_from_one_thread) {
  anycclUniqueId id;
  ASSERT_EQ(anycclGetUniqueId(&id), anycclSuccess) << anycclGetLastError(nullptr);
  anycclComm_t comms[3] = {};
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  for (int r = 0; r < 3; ++r) ASSERT_EQ(anycclCommInitRank(&comms[r], 3, id, r), anycclSuccess);
  ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  for (anycclComm_t comm : comms) ASSERT_EQ(anycclBarrier(comm, nullptr), anycclSuccess);
  ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
  for (anycclComm_t comm : comms) EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
}

TEST(Group, returns_the_first_error_and_starts_nothing) {
  run_ranks(2, [](Communicator& comm) {
    float x = 1;
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    EXPECT_EQ(anycclSend(&x, 1, anycclFloat32, 1 - index(comm.rank()), comm.handle(), nullptr),
              anycclSuccess);
    EXPECT_EQ(anycclRecv(&x, 1, anycclFloat32, 1, nullptr, nullptr), anycclInvalidArgument);
    EXPECT_EQ(anycclGroupEnd(), anycclInvalidArgument);
    ASSERT_OK(wait(comm.barrier()));
  });
}

TEST(Work, overlaps_and_completes_in_call_order) {
  run_ranks(3, [](Communicator& comm) {
    std::vector<std::vector<float>> x(20, std::vector<float>(5000, 1.0F));
    std::vector<Work> works;
    for (auto& buffer : x) {
      auto work = comm.all_reduce(view(buffer), view(buffer), ReduceOp::sum);
      ASSERT_TRUE(work.ok()) << work.status().message();
      works.push_back(*std::move(work));
    }
    ASSERT_OK(works.back().wait());
    for (Work& work : works) {
      auto done = work.test();
      ASSERT_TRUE(done.ok());
      EXPECT_TRUE(*done);
    }
    for (const auto& buffer : x) EXPECT_EQ(buffer[4999], 3.0F);
  });
}

TEST(Work, is_issued_while_another_thread_is_in_a_blocking_call) {
  std::atomic<bool> issued = false;
  run_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == Rank{1}) {  // comes to neither before both are called
      while (!issued) std::this_thread::yield();
      ASSERT_OK(wait(comm.barrier()));
      ASSERT_OK(wait(comm.barrier()));
      return;
    }
    std::atomic<bool> begun = false;
    std::thread blocked([&] {
      begun = true;
      EXPECT_EQ(anycclBarrier(comm.handle(), nullptr), anycclSuccess);
    });
    while (!begun) std::this_thread::yield();
    auto work = comm.barrier();
    EXPECT_OK(work.status());
    issued = true;
    if (work.ok()) EXPECT_OK(work->wait());
    blocked.join();
  });
}

TEST(Communicator, is_used_by_several_threads_that_block) {
  run_ranks(2, [](Communicator& comm) {
    const auto sums = [&] {
      std::vector<float> x(5000);
      for (int i = 0; i < 200; ++i) {
        std::fill(x.begin(), x.end(), 1.0F);
        ASSERT_EQ(anycclAllReduce(x.data(), x.data(), x.size(), anycclFloat32, anycclSum,
                                  comm.handle(), nullptr),
                  anycclSuccess);
        ASSERT_EQ(x, std::vector<float>(x.size(), 2.0F));
      }
    };
    std::thread other(sums);
    sums();
    other.join();
  });
}

TEST(Work, that_is_dropped_still_completes) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(100000, 1.0F);
    { auto dropped = comm.all_reduce(view(x), view(x), ReduceOp::sum); }
    ASSERT_OK(wait(comm.barrier()));
    EXPECT_EQ(x[99999], 2.0F);
  });
}

TEST(PointToPoint, messages_match_in_order_and_do_not_wait_for_collectives) {
  run_ranks(2, [](Communicator& comm) {
    const Rank other{1 - index(comm.rank())};
    std::vector<float> big(400000, static_cast<float>(index(comm.rank()))), got(400000), a(1, 1.0F),
        b(1, 2.0F), first(1), second(1);
    auto collective =
        comm.rank() == Rank{0} ? comm.barrier() : Result<Work>(Work());  // rank 1 calls it last
    auto r0 = comm.recv(view(got), other), r1 = comm.recv(view(first), other),
         r2 = comm.recv(view(second), other);
    auto s0 = comm.send(view(big), other), s1 = comm.send(view(a), other),
         s2 = comm.send(view(b), other);
    for (auto* work : {&r0, &r1, &r2, &s0, &s1, &s2}) ASSERT_OK(wait(std::move(*work)));
    EXPECT_EQ(got[399999], static_cast<float>(index(other)));
    EXPECT_EQ(first[0], 1.0F);
    EXPECT_EQ(second[0], 2.0F);
    if (comm.rank() == Rank{1}) collective = comm.barrier();
    ASSERT_OK(wait(std::move(collective)));
  });
}

TEST(TypedCalls, take_vectors_and_spans_as_they_are) {
  run_ranks(2, [](Communicator& comm) {
    const std::vector<double> x = {1, 2, 3};
    std::vector<double> y(3), halves(6);
    ASSERT_OK(wait(comm.all_reduce(x, y, ReduceOp::sum)));
    EXPECT_EQ(y, (std::vector<double>{2, 4, 6}));
    ASSERT_OK(wait(comm.all_gather(x, std::span<double>(halves))));
    EXPECT_EQ(halves, (std::vector<double>{1, 2, 3, 1, 2, 3}));
  });
}

TEST(Communicators, an_idle_rank_that_asks_hears_of_an_abort) {
  run_ranks(2, [](Communicator& comm) {
    if (comm.rank() == Rank{1}) return static_cast<void>(comm.abort());
    Status failure;
    while (failure.ok()) failure = comm.failure();
    EXPECT_EQ(failure.code(), Code::aborted);
    EXPECT_NE(failure.message().find("rank 1"), std::string::npos) << failure.message();
  });
}

}  // namespace
}  // namespace anyccl::test
