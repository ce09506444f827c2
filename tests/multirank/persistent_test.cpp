// Calls that are prepared once and started many times, and waiting for several works. Ranks as
// threads.

#include <atomic>
#include <numeric>
#include <span>
#include <thread>

#include "support/ranks.hpp"
#include "support/streams.hpp"

namespace anyccl::test {
namespace {

constexpr const char* kTransports[] = {"loopback", "tcp"};
const auto name_of_transport = [](const auto& test) { return std::string(test.param); };

class PreparedCalls : public testing::TestWithParam<const char*> {
  const Environment transport_{{{"ANYCCL_TRANSPORT", GetParam()}}};
};
class SeveralWorks : public testing::TestWithParam<const char*> {
  const Environment transport_{{{"ANYCCL_TRANSPORT", GetParam()}}};
};
INSTANTIATE_TEST_SUITE_P(Over, PreparedCalls, testing::ValuesIn(kTransports), name_of_transport);
INSTANTIATE_TEST_SUITE_P(Over, SeveralWorks, testing::ValuesIn(kTransports), name_of_transport);

anycclCall_t call_of(anycclCollective_t collective, std::span<float> in, std::span<float> out,
                     int root = 0, int tag = 0) {
  anycclCall_t call{};
  call.size = sizeof call;
  call.collective = collective;
  call.sendbuff = in.data();
  call.recvbuff = out.data();
  call.count = in.size();
  call.datatype = anycclFloat32;
  call.op = anycclSum;
  call.root = root;
  call.tag = tag;
  return call;
}

PersistentCall prepared(Communicator& comm, const anycclCall_t& call) {
  auto made = prepare(comm, call);
  EXPECT_OK(made.status());
  return made.ok() ? *std::move(made) : PersistentCall();
}

std::string last_plan(const Communicator& comm) {
  const char* text = nullptr;
  EXPECT_EQ(anycclCommLastPlan(comm.handle(), &text), anycclSuccess);
  return text == nullptr ? "" : text;
}

/// Rank 0 makes ordinary calls.
TEST_P(PreparedCalls, can_be_started_again_with_other_contents) {
  run_ranks(3, [](Communicator& comm) {
    for (const std::size_t count : {1U, 1000U, 300000U}) {
      std::vector<float> x(count), y(count);
      const anycclCall_t call = call_of(anycclCollAllReduce, x, y);
      PersistentCall sum = prepared(comm, call);
      for (int round = 1; round < 6; ++round) {
        std::fill(x.begin(), x.end(), static_cast<float>(round * index(comm.rank())));
        ASSERT_OK(wait(comm.rank() == Rank{0} ? comm.issue(call) : sum.start()));
        ASSERT_EQ(y, std::vector<float>(count, 3.0F * static_cast<float>(round)));
        ASSERT_OK(wait(comm.barrier()));
      }
    }
  });
}

TEST_P(PreparedCalls, keep_their_own_arrays) {
  run_ranks(3, [](Communicator& comm) {
    const auto me = uindex(comm.rank());
    std::vector<float> x(6, static_cast<float>(me)), y(9, -1);
    std::vector<std::size_t> counts{1, 2, 3}, sent_at{0, 1, 3}, received(3, me + 1),
        received_at{0, 3, 6};
    anycclCall_t call = call_of(anycclCollAllToAllv, x, y);
    call.sendcounts = counts.data(), call.sdispls = sent_at.data();
    call.recvcounts = received.data(), call.rdispls = received_at.data();
    PersistentCall exchange = prepared(comm, call);
    for (auto* array : {&counts, &sent_at, &received, &received_at}) array->assign(3, 77);
    for (int round = 0; round < 3; ++round) {
      std::fill(y.begin(), y.end(), -1.0F);
      ASSERT_OK(wait(exchange.start()));
      for (std::size_t r = 0; r < 3; ++r)
        for (std::size_t i = 0; i < 3; ++i)
          EXPECT_EQ(y[3 * r + i], i <= me ? static_cast<float>(r) : -1.0F);
    }
  });
}

TEST_P(PreparedCalls, do_not_say_how_the_last_collective_ran) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(10), y(10);
    ASSERT_OK(wait(comm.barrier()));
    PersistentCall sum = prepared(comm, call_of(anycclCollAllReduce, x, y));
    EXPECT_EQ(last_plan(comm).find("barrier"), 0U);
    ASSERT_OK(wait(sum.start()));
    EXPECT_EQ(last_plan(comm).find("all_reduce"), 0U);
    ASSERT_OK(wait(comm.barrier()));
  });
}

TEST_P(PreparedCalls, leave_earlier_works_alone) {
  std::atomic<bool> asked{false};
  run_ranks(2, [&](Communicator& comm) {
    std::vector<float> x(3, 1.0F);
    if (comm.rank() == Rank{0}) {
      ASSERT_OK(wait(comm.send(view(x), Rank{1})));
      while (!asked) std::this_thread::yield();
      ASSERT_OK(wait(comm.send(view(x), Rank{1})));
      return;
    }
    PersistentCall receive = prepared(comm, call_of(anycclCollRecv, x, x));
    auto first = receive.start();
    ASSERT_OK(first.status());
    ASSERT_OK(first->wait());
    auto second = receive.start();
    ASSERT_OK(second.status());
    EXPECT_TRUE(*first->test());
    EXPECT_FALSE(*second->test());
    const Status status = receive.start().status();
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_NE(status.message().find("not complete"), std::string::npos) << status.message();
    asked = true;
    receive = PersistentCall();  // its operation goes on
    ASSERT_OK(second->wait());
    EXPECT_EQ(*second->source(), Rank{0});
  });
}

TEST_P(PreparedCalls, that_are_started_together_cannot_wait_for_each_other) {
  run_ranks(3, [](Communicator& comm) {
    constexpr std::size_t kLong = 1 << 20;
    const int me = index(comm.rank()), next = (me + 1) % 3, before = (me + 2) % 3;
    std::vector<float> x(kLong), y(kLong), ones(4, 1.0F), sums(4);
    anycclCall_t send = call_of(anycclCollSend, x, x, next, 5);
    send.synchronous = 1;
    std::vector<PersistentCall> ring;
    ring.push_back(prepared(comm, send));
    ring.push_back(prepared(comm, call_of(anycclCollAllReduce, ones, sums)));
    ring.push_back(prepared(comm, call_of(anycclCollRecv, y, y, before, 5)));
    for (int round = 0; round < 4; ++round) {
      std::fill(x.begin(), x.end(), static_cast<float>(10 * round + me));
      auto works = start_all(ring);
      ASSERT_OK(works.status());
      ASSERT_OK(wait_all(*works));
      EXPECT_EQ(y.front(), static_cast<float>(10 * round + before));
      EXPECT_EQ(y.back(), y.front());
      EXPECT_EQ(sums, std::vector<float>(4, 3.0F));
    }
  });
}

TEST_P(PreparedCalls, that_are_small_travel_as_one) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<std::vector<float>> x(5, std::vector<float>(8, 1.0F)), y(5, std::vector<float>(8));
    std::vector<PersistentCall> sums;
    for (std::size_t i = 0; i < 5; ++i)
      sums.push_back(prepared(comm, call_of(anycclCollAllReduce, x[i], y[i])));
    for (int round = 0; round < 3; ++round) {
      auto works = start_all(sums);
      ASSERT_OK(works.status());
      ASSERT_OK(wait_all(*works));
      for (const auto& result : y) EXPECT_EQ(result, std::vector<float>(8, 2.0F));
      EXPECT_NE(last_plan(comm).find("5 calls as one"), std::string::npos) << last_plan(comm);
      ASSERT_OK(wait(sums[0].start()));  // and alone
    }
  });
}

TEST_P(PreparedCalls, of_several_communicators_are_started_together) {
  run_ranks(2, [](Communicator& comm) {
    auto other = comm.split(0, -index(comm.rank()));  // the other way round
    ASSERT_OK(other.status());
    std::vector<float> x(3, 1.0F), y(3), z(3);
    std::vector<PersistentCall> sums;
    sums.push_back(prepared(*other, call_of(anycclCollAllReduce, x, y)));
    sums.push_back(prepared(comm, call_of(anycclCollAllReduce, x, z)));
    auto works = start_all(sums);
    ASSERT_OK(works.status());
    ASSERT_OK(wait_all(*works));
    EXPECT_EQ(y, std::vector<float>(3, 2.0F));
    EXPECT_EQ(z, std::vector<float>(3, 2.0F));
  });
}

TEST_P(PreparedCalls, in_a_stream_wait_for_earlier_work) {
  run_ranks(2, [](Communicator& comm) {
    Stream stream = new_stream();
    std::vector<float> x(3), y(3);
    anycclCall_t call = call_of(anycclCollAllReduce, x, y);
    call.stream = stream.handle();
    PersistentCall sum = prepared(comm, call);
    for (int round = 0; round < 3; ++round) {
      ASSERT_OK(stream.run([&] { x.assign(3, static_cast<float>(round)); }));
      auto work = sum.start();
      ASSERT_OK(work.status());
      ASSERT_OK(stream.synchronize());
      EXPECT_EQ(y, std::vector<float>(3, 2.0F * static_cast<float>(round)));
      EXPECT_TRUE(*work->test());
    }
    const anycclPrepared_t handle = sum.handle();
    anycclWork_t work = nullptr;
    EXPECT_EQ(anycclStartAll(&handle, 1, &work), anycclInvalidUsage);
    EXPECT_EQ(work, nullptr);
  });
}

TEST_P(PreparedCalls, keep_a_stream_that_was_destroyed) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(3, 1.0F), y(3);
    PersistentCall sum;
    {
      Stream stream = new_stream();
      anycclCall_t call = call_of(anycclCollAllReduce, x, y);
      call.stream = stream.handle();
      sum = prepared(comm, call);
      ASSERT_OK(stream.run([] {}));
      ASSERT_OK(stream.synchronize());  // its thread runs, and ends with it
    }
    for (int round = 1; round <= 3; ++round) {
      x.assign(3, static_cast<float>(round));
      ASSERT_OK(wait(sum.start()));
      EXPECT_EQ(y, std::vector<float>(3, 2.0F * static_cast<float>(round)));
    }
  });
}

TEST_P(PreparedCalls, keep_their_operator) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(3, 1.0F), y(3);
    const auto op = comm.create_pre_mul_sum(3.0F);
    ASSERT_OK(op.status());
    anycclCall_t call = call_of(anycclCollAllReduce, x, y);
    call.op = static_cast<anycclRedOp_t>(*op);
    PersistentCall sum = prepared(comm, call);
    ASSERT_OK(wait(sum.start()));
    EXPECT_EQ(y, std::vector<float>(3, 6.0F));
    ASSERT_OK(comm.destroy_operator(*op));
    ASSERT_OK(comm.create_pre_mul_sum(5.0F).status());
    ASSERT_OK(wait(sum.start()));
    EXPECT_EQ(y, std::vector<float>(3, 6.0F));
  });
}

TEST_P(PreparedCalls, cannot_be_started_when_their_communicator_is_gone) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(3), y(3);
    PersistentCall sum = prepared(comm, call_of(anycclCollAllReduce, x, y));
    ASSERT_OK(wait(sum.start()));
    ASSERT_OK(comm.destroy());
    const Status status = sum.start().status();
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_NE(status.message().find("destroyed"), std::string::npos) << status.message();
  });
}

TEST_P(PreparedCalls, fail_with_their_communicator) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(3), y(3);
    PersistentCall sum = prepared(comm, call_of(anycclCollAllReduce, x, y));
    if (comm.rank() == Rank{1}) {
      ASSERT_OK(comm.abort());
      return;
    }
    const Status status = wait(sum.start());
    EXPECT_EQ(status.code(), Code::aborted) << status.message();
    EXPECT_EQ(wait(sum.start()).code(), Code::aborted);
  });
}

TEST_P(SeveralWorks, are_waited_for_in_the_order_of_their_ends) {
  std::atomic<int> wanted{-1};
  run_ranks(2, [&](Communicator& comm) {
    constexpr int kOrder[] = {2, 0, 3, 1};
    std::vector<float> x(4);
    if (comm.rank() == Rank{0}) {
      for (const int tag : kOrder) {
        while (wanted != tag) std::this_thread::yield();
        x[0] = static_cast<float>(tag);
        ASSERT_OK(wait(comm.send(view(std::span(x).first(1)), Rank{1}, {}, tag)));
      }
      return;
    }
    std::vector<Work> works;
    for (int tag = 0; tag < 4; ++tag) {
      auto work =
          comm.recv(view(std::span(x).subspan(static_cast<std::size_t>(tag), 1)), Rank{0}, {}, tag);
      ASSERT_OK(work.status());
      works.push_back(*std::move(work));
    }
    for (const int tag : kOrder) {
      EXPECT_EQ(test_any(works).status.code(), Code::in_progress);
      const Completed none = wait_any_for(works, 5);
      EXPECT_EQ(none.status.code(), Code::in_progress);
      EXPECT_EQ(none.index, 4U);
      wanted = tag;
      Completed first = tag % 2 == 0 ? wait_any(works) : test_any(works);
      while (first.status.code() == Code::in_progress) first = test_any(works);
      ASSERT_OK(first.status);
      ASSERT_EQ(first.index, static_cast<std::size_t>(tag));
      EXPECT_EQ(wait_any(works).index, first.index);  // again, as long as it is there
      works[first.index] = Work();
    }
    EXPECT_EQ(x, (std::vector<float>{0, 1, 2, 3}));
    for (const Completed& all : {wait_any(works), test_any(works), wait_any_for(works, 0)}) {
      EXPECT_OK(all.status);
      EXPECT_EQ(all.index, 4U);
    }
    EXPECT_OK(wait_all(works));
  });
}

/// What rank 0 waits for first, rank 1 does last.
TEST_P(SeveralWorks, of_several_communicators_all_move) {
  run_ranks(2, [](Communicator& comm) {
    auto other = comm.split(0, index(comm.rank()));
    ASSERT_OK(other.status());
    std::vector<float> x(1 << 20, 1.0F), y(1 << 20, 1.0F);
    std::vector<Work> works(1);  // one that is empty
    const auto add = [&](Communicator& to, std::vector<float>& data) {
      auto work = to.all_reduce(view(data), view(data), ReduceOp::sum);
      ASSERT_OK(work.status());
      works.push_back(*std::move(work));
    };
    add(comm.rank() == Rank{0} ? comm : *other, x);
    add(comm.rank() == Rank{0} ? *other : comm, y);
    for (int i = 0; i < 2; ++i) {
      const Completed first = wait_any(works);
      ASSERT_OK(first.status);
      ASSERT_TRUE(first.index == 1 || first.index == 2);
      works[first.index] = Work();
    }
    EXPECT_EQ(x.back(), 2.0F);
    EXPECT_EQ(y.back(), 2.0F);
  });
}

TEST_P(SeveralWorks, say_which_one_failed) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(3), y(4), z(1);
    std::vector<Work> works;
    works.push_back(*comm.recv(view(z), comm.rank(), {}, 2));  // still open
    works.push_back(*comm.recv(view(y), comm.rank(), {}, 1));
    ASSERT_OK(comm.send(view(x), comm.rank(), {}, 1).status());
    const Completed first = wait_any(works);
    EXPECT_EQ(first.index, 1U);
    EXPECT_EQ(first.status.code(), Code::invalid_usage) << first.status.message();
    ASSERT_OK(comm.send(view(z), comm.rank(), {}, 2).status());
    EXPECT_EQ(wait_all(works).code(), Code::invalid_usage);
    EXPECT_TRUE(*works[0].test());
  });
}

TEST_P(SeveralWorks, end_when_a_communicator_fails) {
  for (const bool any : {true, false}) {
    std::atomic<bool> waits{false};
    run_ranks(2, [&](Communicator& comm) {
      auto other = comm.split(0, index(comm.rank()));
      ASSERT_OK(other.status());
      std::vector<float> x(3), y(3);
      if (comm.rank() == Rank{1}) {
        while (!waits) std::this_thread::yield();
        ASSERT_OK(other->abort());
        if (!any) ASSERT_OK(wait(comm.send(view(x), Rank{0})));
        ASSERT_OK(wait(comm.barrier()));
        return;
      }
      std::vector<Work> works;
      works.push_back(*comm.recv(view(x), any ? Rank{0} : Rank{1}));
      works.push_back(*other->recv(view(y), Rank{1}));
      waits = true;
      if (any) {
        const Completed first = wait_any(works);
        EXPECT_EQ(first.index, 1U);
        EXPECT_EQ(first.status.code(), Code::aborted) << first.status.message();
        ASSERT_OK(wait(comm.send(view(y), Rank{0})));
      } else {
        EXPECT_EQ(wait_all(works).code(), Code::aborted);
        EXPECT_TRUE(*works[0].test());
      }
      ASSERT_OK(wait(comm.barrier()));
    });
  }
}

}  // namespace
}  // namespace anyccl::test
