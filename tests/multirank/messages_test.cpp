// Point to point: tags, any source, messages that come before they are wanted, time limits, and
// what goes on while nobody waits. Ranks as threads.

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

class Messages : public testing::TestWithParam<const char*> {
  const Environment transport_{{{"ANYCCL_TRANSPORT", GetParam()}}};
};
INSTANTIATE_TEST_SUITE_P(Over, Messages, testing::Values("loopback", "unix", "tcp"),
                         [](const auto& transport) { return std::string(transport.param); });

constexpr std::size_t kSizes[] = {0, 1, 1000, 3 << 20};

std::vector<float> numbers(std::size_t count, int salt) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i)
    x[i] = static_cast<float>(salt) + static_cast<float>(i % 97);
  return x;
}

TEST_P(Messages, match_by_tag_and_then_in_order) {
  run_ranks(2, [](Communicator& comm) {
    for (const std::size_t count : kSizes) {
      constexpr int kTags[] = {5, ANYCCL_LAYER_TAG(0), 5, ANYCCL_MAX_TAG};
      constexpr std::size_t kWanted[] = {3, 1, 0, 2};  // the two of tag 5 in order
      std::vector<std::vector<float>> data;
      std::vector<Work> works;
      for (int m = 0; m < 4; ++m)
        data.push_back(comm.rank() == Rank{0} ? numbers(count, m) : std::vector<float>(count));
      for (std::size_t m = 0; m < 4; ++m) {
        const std::size_t which = comm.rank() == Rank{0} ? m : kWanted[m];
        auto work = comm.rank() == Rank{0}
                        ? comm.send(view(data[m]), Rank{1}, {}, kTags[m])
                        : comm.recv(view(data[which]), Rank{0}, {}, kTags[which]);
        ASSERT_OK(work.status());
        works.push_back(*std::move(work));
        if (comm.rank() == Rank{1}) ASSERT_OK(works.back().wait());  // one after the other
      }
      for (Work& work : works) ASSERT_OK(work.wait());
      for (int m = 0; m < 4; ++m) EXPECT_EQ(data[static_cast<std::size_t>(m)], numbers(count, m));
    }
  });
}

TEST_P(Messages, of_any_source_say_where_they_are_from) {
  run_ranks(4, [](Communicator& comm) {
    int tag = 6;  // another one each time: who is ahead does not mix in
    for (const std::size_t count : kSizes) {
      ++tag;
      if (comm.rank() != Rank{2}) {
        std::vector<float> mine = numbers(count, index(comm.rank()));
        ASSERT_OK(wait(comm.send(view(mine), Rank{2}, {}, tag)));
        continue;
      }
      std::vector<bool> seen(4);
      for (int i = 0; i < 3; ++i) {
        std::vector<float> theirs(count);
        auto work = comm.recv(view(theirs), kAnySource, {}, tag);
        ASSERT_OK(work.status());
        ASSERT_OK(work->wait());
        const auto source = work->source();
        ASSERT_OK(source.status());
        EXPECT_FALSE(seen[uindex(*source)]);
        seen[uindex(*source)] = true;
        EXPECT_EQ(theirs, numbers(count, index(*source)));
      }
    }
    ASSERT_OK(wait(comm.barrier()));
  });
}

TEST_P(Messages, go_to_the_receive_that_was_called_first) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> first(3), second(3), third(3);
    if (comm.rank() == Rank{0}) {
      ASSERT_OK(wait(comm.barrier()));
      for (int m = 0; m < 3; ++m) {
        std::vector<float> x = numbers(3, m);
        ASSERT_OK(wait(comm.send(view(x), Rank{1})));
      }
      return;
    }
    auto a = comm.recv(view(first), kAnySource), b = comm.recv(view(second), Rank{0}),
         c = comm.recv(view(third), kAnySource);
    ASSERT_OK(wait(comm.barrier()));
    ASSERT_OK(c->wait());
    ASSERT_OK(a->wait());
    ASSERT_OK(b->wait());
    EXPECT_EQ(first, numbers(3, 0));
    EXPECT_EQ(second, numbers(3, 1));
    EXPECT_EQ(third, numbers(3, 2));
  });
}

TEST_P(Messages, to_itself_have_tags_too) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> a = numbers(10, 1), b = numbers(10, 2), c(10), d(10);
    auto sent_a = comm.send(view(a), comm.rank(), {}, 1);
    auto sent_b = comm.send(view(b), comm.rank(), {}, 2);
    ASSERT_OK(wait(comm.recv(view(d), comm.rank(), {}, 2)));
    auto any = comm.recv(view(c), kAnySource, {}, 1);
    ASSERT_OK(any->wait());
    EXPECT_EQ(*any->source(), comm.rank());
    ASSERT_OK(sent_a->wait());
    ASSERT_OK(sent_b->wait());
    EXPECT_EQ(c, a);
    EXPECT_EQ(d, b);
  });
}

TEST_P(Messages, that_were_kept_are_checked_like_others) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(8), y(9);
    if (comm.rank() == Rank{0}) {
      static_cast<void>(wait(comm.send(view(x), Rank{1}, {}, 1)));
      static_cast<void>(wait(comm.send(view(x), Rank{1}, {}, 2)));
      return;
    }
    ASSERT_OK(wait(comm.recv(view(x), Rank{0}, {}, 2)));
    const Status status = wait(comm.recv(view(y), Rank{0}, {}, 1));
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_NE(status.message().find("rank 0 sends 8 f32 to rank 1, which receives 9 f32"),
              std::string::npos)
        << status.message();
  });
}

TEST_P(Messages, from_anyone_fail_when_everyone_is_gone) {
  run_ranks(3, [](Communicator& comm) {
    if (comm.rank() != Rank{1}) {
      ASSERT_OK(comm.destroy());
      return;
    }
    float x = 0;
    const Status status = wait(comm.recv(view(std::span(&x, 1)), kAnySource));
    EXPECT_EQ(status.code(), Code::remote_error);
    EXPECT_NE(status.message().find("all others are gone"), std::string::npos) << status.message();
  });
}

TEST_P(Messages, may_be_given_a_time_limit_later) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(3);
    if (comm.rank() == Rank{1}) {  // sends nothing
      EXPECT_FALSE(wait(comm.recv(view(x), Rank{0})).ok());
      return;
    }
    auto work = comm.recv(view(x), Rank{1});
    ASSERT_OK(work->limit(0));
    EXPECT_EQ(work->wait_for(30).code(), Code::in_progress);
    ASSERT_OK(work->limit(30));
    const Status status = work->wait();
    EXPECT_EQ(status.code(), Code::timeout) << status.message();
    EXPECT_NE(status.message().find("after 30 ms"), std::string::npos) << status.message();
  });
}

TEST(MessagesOfOne, end_with_their_communicator) {
  run_ranks(1, [](Communicator& comm) {
    float x = 0;
    auto work = comm.recv(view(std::span(&x, 1)), kAnySource);
    ASSERT_OK(work.status());
    ASSERT_OK(comm.destroy());
    EXPECT_EQ(work->wait().code(), Code::invalid_usage);
  });
}

TEST_P(Messages, must_have_a_tag_that_exists) {
  run_ranks(1, [](Communicator& comm) {
    float x = 0;
    for (const int tag : {-1, ANYCCL_LAYER_TAG(1 << 20)}) {
      const Status status = comm.send(view(std::span(&x, 1)), Rank{0}, {}, tag).status();
      EXPECT_EQ(status.code(), Code::invalid_argument);
      EXPECT_NE(status.message().find("tag " + std::to_string(tag)), std::string::npos);
    }
    EXPECT_EQ(comm.send(view(std::span(&x, 1)), kAnySource).status().code(),
              Code::invalid_argument);
  });
}

/// Rank 0 never waits for what it sends, and both wait in another communicator.
TEST_P(Messages, arrive_while_nobody_waits_for_them) {
  run_ranks(2, [](Communicator& comm) {
    auto other = comm.split(0, index(comm.rank()));
    ASSERT_OK(other.status());
    for (int round = 0; round < 10; ++round) {
      std::vector<float> x =
          comm.rank() == Rank{0} ? numbers(2 << 20, round) : std::vector<float>(2 << 20);
      if (comm.rank() == Rank{0}) {
        ASSERT_OK(comm.send(view(x), Rank{1}).status());  // dropped
      } else {
        ASSERT_OK(wait(comm.recv(view(x), Rank{0})));
        ASSERT_EQ(x, numbers(2 << 20, round));
      }
      ASSERT_OK(wait(other->barrier()));
    }
  });
}

TEST_P(Messages, of_collectives_go_on_and_are_told_of_while_nobody_waits) {
  run_ranks(3, [](Communicator& comm) {
    constexpr int kCalls = 20;
    std::vector<std::vector<float>> x(kCalls, std::vector<float>(10000, 1.0F));
    std::atomic<int> done{0};
    for (auto& buffer : x) {
      auto work = comm.all_reduce(view(buffer), view(buffer), ReduceOp::sum);
      ASSERT_OK(work.status());
      ASSERT_EQ(
          anycclWorkNotify(
              work->handle(), [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &done),
          anycclSuccess);
    }
    while (done < kCalls) std::this_thread::yield();  // the test's own time limit is the deadline
    for (const auto& buffer : x) ASSERT_EQ(buffer.back(), 3.0F);
  });
}

anycclCall_t barrier_within(unsigned milliseconds) {
  anycclCall_t call{};
  call.size = sizeof call;
  call.collective = anycclCollBarrier;
  call.datatype = anycclFloat32;
  call.timeout_ms = milliseconds;
  return call;
}

void expect_late(const Status& status, const char* what) {
  EXPECT_EQ(status.code(), Code::timeout) << status.message();
  for (const char* part : {"timeout after 100 ms", what})
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST_P(Messages, and_collectives_name_who_is_late) {
  std::atomic<int> failed{0};
  run_ranks(3, [&](Communicator& comm) {
    ASSERT_OK(wait(comm.barrier()));
    if (comm.rank() == Rank{2}) {
      while (failed < 2) std::this_thread::yield();
      return;
    }
    const anycclCall_t call = barrier_within(100);
    Status status;
    if (comm.rank() == Rank{0})  // one runs it, the other issues it
      status = static_cast<Code>(anycclRun(&call, comm.handle())) == Code::ok ? Status()
                                                                              : comm.failure();
    else
      status = wait(comm.issue(call));
    // Who fails second may hear of it from the first.
    EXPECT_NE(status.message().find("timeout after 100 ms"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("barrier"), std::string::npos) << status.message();
    ++failed;
  });
}

/// Together they take longer than the limit of each.
TEST(Collectives, that_are_queued_are_not_late_as_long_as_the_queue_moves) {
  run_ranks(2, [&](Communicator& comm) {
    const anycclCall_t call = barrier_within(2000);
    std::vector<Work> works;
    for (int i = 0; i < 2; ++i) {
      if (comm.rank() == Rank{1}) std::this_thread::sleep_for(std::chrono::milliseconds(1200));
      auto work = comm.issue(call);
      ASSERT_OK(work.status());
      works.push_back(*std::move(work));
    }
    for (Work& work : works) EXPECT_OK(work.wait());
  });
}

/// Rank 1 comes only after rank 0 was told to wait for it otherwise.
TEST_P(Messages, and_collectives_that_take_long_go_on_without_their_caller) {
  std::atomic<int> handed_over{0};
  run_ranks(2, [&](Communicator& comm) {
    const bool late = comm.rank() == Rank{1};
    std::vector<float> x(1000, late ? 2.0F : 1.0F), y(10, late ? 5.0F : 0.0F);
    const anycclCall_t calls[] = {call_of(anycclCollAllReduce, x),
                                  call_of(late ? anycclCollSend : anycclCollRecv, y, late ? 0 : 1)};
    int before = 0;
    for (const anycclCall_t& call : calls) {
      while (late && handed_over == before)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++before;
      anycclWork_t work = nullptr;
      const anycclResult_t result = anycclRunFor(&call, comm.handle(), late ? 20'000 : 1, &work);
      if (late) {
        EXPECT_EQ(result, anycclSuccess);
        EXPECT_EQ(work, nullptr);
        continue;
      }
      ++handed_over;
      EXPECT_EQ(result, anycclInProgress);
      EXPECT_OK(Work(work).wait());
    }
    EXPECT_EQ(x, std::vector<float>(1000, 3.0F));
    EXPECT_EQ(y, std::vector<float>(10, 5.0F));
    EXPECT_OK(wait(comm.barrier()));
  });
}

TEST_P(Messages, are_late_too) {
  for (const Rank from : {Rank{1}, kAnySource}) {
    std::atomic<bool> failed{false};
    run_ranks(2, [&](Communicator& comm) {
      ASSERT_OK(wait(comm.barrier()));
      if (comm.rank() == Rank{1}) {
        while (!failed) std::this_thread::yield();
        return;
      }
      float x = 0;
      anycclCall_t call{};
      call.size = sizeof call;
      call.collective = anycclCollRecv;
      call.recvbuff = &x;
      call.count = 1;
      call.datatype = anycclFloat32;
      call.root = index(from);
      call.timeout_ms = 100;
      expect_late(wait(comm.issue(call)), from == kAnySource ? "any rank" : "rank 1");
      failed = true;
    });
  }
}

TEST_P(Messages, can_be_waited_for_with_a_limit_and_again) {
  std::atomic<bool> asked{false};
  run_ranks(2, [&](Communicator& comm) {
    float x = index(comm.rank()) == 0 ? 0.0F : 5.0F;
    if (comm.rank() == Rank{1}) {
      while (!asked) std::this_thread::yield();
      ASSERT_OK(wait(comm.send(view(std::span(&x, 1)), Rank{0})));
      return;
    }
    auto work = comm.recv(view(std::span(&x, 1)), Rank{1});
    ASSERT_OK(work.status());
    EXPECT_EQ(work->wait_for(20).code(), Code::in_progress);
    EXPECT_EQ(work->source().status().code(), Code::invalid_usage);
    asked = true;
    ASSERT_OK(work->wait());
    EXPECT_EQ(x, 5.0F);
  });
}

}  // namespace
}  // namespace anyccl::test
