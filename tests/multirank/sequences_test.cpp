// Calls of several operations are one place in the order of calls, whatever other threads call.

#include <atomic>
#include <chrono>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// Gives calls of another thread time to come too early, if nothing keeps them back. A longer or a
/// shorter one makes no right library fail.
constexpr auto kAMoment = std::chrono::milliseconds(20);

class Sequences : public testing::TestWithParam<const char*> {
  const Environment transport_{{{"ANYCCL_TRANSPORT", GetParam()}}};
};
INSTANTIATE_TEST_SUITE_P(Over, Sequences, testing::Values("loopback", "shm", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

/// The sum of `value` over all ranks, in `count` elements.
Status sum(Communicator& comm, std::size_t count, float value) {
  std::vector<float> x(count, value), y(count);
  const Status status = wait(comm.all_reduce(view(x), view(y), ReduceOp::sum));
  if (!status.ok()) return status;
  const float expected = value * static_cast<float>(comm.size());
  return y[count - 1] == expected ? Status() : Status(Code::aborted, "a wrong sum");
}

/// What another thread may call meanwhile.
using OtherCall = std::function<Status(Communicator&)>;

Status issue(Communicator& comm) {
  std::vector<float> x(3, 1.0F);
  auto work = comm.all_reduce(view(x), view(x), ReduceOp::sum);
  return work.ok() ? work->wait() : work.status();
}

Status start(Communicator& comm) {
  std::vector<float> x(3, 1.0F);
  const anycclCall_t call = call_of(anycclCollAllReduce, x);
  anycclPrepared_t prepared = nullptr;
  anycclWork_t work = nullptr;
  const auto failed = [&](anycclResult_t code) {
    return code == anycclSuccess ? Status()
                                 : Status(static_cast<Code>(code), anycclGetLastError(nullptr));
  };
  Status status = failed(anycclPrepare(&call, comm.handle(), &prepared));
  if (status.ok()) status = failed(anycclStart(prepared, &work));
  if (status.ok()) status = failed(anycclWorkWait(work));
  static_cast<void>(anycclWorkFree(work));
  static_cast<void>(anycclPreparedFree(prepared));
  return status;
}

Status group(Communicator& comm) {
  std::vector<float> x(3, 1.0F), y(5, 1.0F);
  anycclGroupStart();
  for (auto* const one : {&x, &y})
    anycclAllReduce(one->data(), one->data(), one->size(), anycclFloat32, anycclSum, comm.handle(),
                    nullptr);
  const anycclResult_t code = anycclGroupEnd();
  return code == anycclSuccess ? Status() : Status(static_cast<Code>(code), "the group");
}

Status split(Communicator& comm) {
  anycclComm_t made = nullptr;
  const anycclResult_t code = anycclCommSplit(comm.handle(), 0, 0, &made, nullptr);
  if (code != anycclSuccess)
    return Status(static_cast<Code>(code), anycclGetLastError(comm.handle()));
  anycclCommDestroy(made);
  return {};
}

Status begin_another(Communicator& comm) {
  const auto sequence = Sequence::begin(comm);
  return sequence.ok() ? sum(comm, 7, 1) : sequence.status();
}

TEST_P(Sequences, keep_collectives_of_other_threads_back) {
  const OtherCall calls[] = {
      [](Communicator& c) { return sum(c, 3, 1); }, issue, start, group, split, begin_another};
  run_ranks(2, [&](Communicator& comm) {
    for (const OtherCall& call : calls) {
      std::atomic<bool> done = false;
      auto sequence = Sequence::begin(comm);
      ASSERT_OK(sequence.status());
      ASSERT_OK(sum(comm, 1, 2));
      std::thread other([&] {
        EXPECT_OK(call(comm));
        done = true;
      });
      std::this_thread::sleep_for(kAMoment);
      ASSERT_OK(sum(comm, 2, 3));
      EXPECT_FALSE(done);
      sequence->end();
      other.join();
    }
  });
}

/// Two ranks send each other a number: issued together, and started together.
void exchange_together(Communicator& comm) {
  std::vector<float> sent(1, 2.0F), received(1);
  anycclCall_t calls[] = {call_of(anycclCollSend, sent), call_of(anycclCollRecv, received)};
  for (anycclCall_t& call : calls) call.root = 1 - index(comm.rank());
  anycclWork_t works[2] = {};
  const auto finish = [&] {
    for (anycclWork_t work : works) {
      EXPECT_EQ(anycclWorkWait(work), anycclSuccess);
      EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
    }
    EXPECT_EQ(std::exchange(received[0], 0), 2);
  };
  ASSERT_EQ(anycclIssueAll(calls, 2, comm.handle(), works), anycclSuccess);
  finish();
  anycclPrepared_t prepared[2] = {};
  for (int i : {0, 1})
    ASSERT_EQ(anycclPrepare(&calls[i], comm.handle(), &prepared[i]), anycclSuccess);
  ASSERT_EQ(anycclStartAll(prepared, 2, works), anycclSuccess);
  finish();
  for (anycclPrepared_t one : prepared) EXPECT_EQ(anycclPreparedFree(one), anycclSuccess);
}

TEST_P(Sequences, let_messages_pass) {
  run_ranks(2, [](Communicator& comm) {
    const auto sequence = Sequence::begin(comm);
    ASSERT_OK(sequence.status());
    std::thread other([&] {
      std::vector<float> x(1, 1.0F);
      if (comm.rank() == Rank{0})
        EXPECT_OK(wait(comm.send(view(x), Rank{1})));
      else
        EXPECT_OK(wait(comm.recv(view(x), Rank{0})));
      exchange_together(comm);
    });
    other.join();
  });
}

TEST_P(Sequences, are_handed_to_another_thread) {
  run_ranks(2, [](Communicator& comm) {
    ASSERT_EQ(anycclSequenceBegin(comm.handle(), ANYCCL_NO_TIMEOUT), anycclSuccess);
    ASSERT_EQ(anycclSequenceHandOver(comm.handle()), anycclSuccess);
    std::thread other([&] {
      std::this_thread::sleep_for(kAMoment);
      EXPECT_EQ(anycclSequenceTake(comm.handle()), anycclSuccess);
      EXPECT_OK(sum(comm, 4, 1));
      EXPECT_EQ(anycclSequenceEnd(comm.handle()), anycclSuccess);
    });
    EXPECT_OK(sum(comm, 5, 1));  // waits for the end
    other.join();
  });
}

TEST_P(Sequences, say_what_is_wrong) {
  run_ranks(1, [](Communicator& comm) {
    anycclComm_t const c = comm.handle();
    EXPECT_EQ(anycclSequenceEnd(c), anycclInvalidUsage);
    EXPECT_EQ(anycclSequenceTake(c), anycclInvalidUsage);
    EXPECT_EQ(anycclSequenceHandOver(c), anycclInvalidUsage);
    EXPECT_EQ(anycclSequenceBegin(nullptr, 0), anycclInvalidArgument);
    ASSERT_EQ(anycclSequenceBegin(c, 0), anycclSuccess);
    EXPECT_EQ(anycclSequenceBegin(c, 0), anycclInvalidUsage);
    std::thread([&] { EXPECT_EQ(anycclSequenceBegin(c, 1), anycclInProgress); }).join();
    anycclGroupStart();
    EXPECT_EQ(anycclSequenceBegin(c, 0), anycclInvalidUsage);
    anycclGroupEnd();
    ASSERT_EQ(anycclSequenceEnd(c), anycclSuccess);
    ASSERT_EQ(anycclSequenceBegin(c, 0), anycclSuccess);  // and the communicator ends within it
  });
}

TEST_P(Sequences, that_do_not_end_are_a_timeout_of_who_waits) {
  run_ranks(2, [](Communicator& comm) {
    const auto sequence = Sequence::begin(comm);
    ASSERT_OK(sequence.status());
    std::thread([&] {
      std::vector<float> x(1, 1.0F);
      anycclCall_t call = call_of(anycclCollAllReduce, x);
      call.timeout_ms = 30;
      EXPECT_EQ(anycclRun(&call, comm.handle()), anycclTimeout);
      EXPECT_NE(std::string(anycclGetLastError(comm.handle())).find("another thread"),
                std::string::npos);
      anycclWork_t work = nullptr;
      call.timeout_ms = 0;
      EXPECT_EQ(anycclRunFor(&call, comm.handle(), 1, &work), anycclInProgress);
      EXPECT_EQ(work, nullptr);
    }).join();
    EXPECT_OK(sum(comm, 3, 1));
  });
}

TEST_P(Sequences, of_a_communicator_that_has_failed_are_its_failure) {
  run_ranks(2, [](Communicator& comm) {
    if (comm.rank() == Rank{0}) {
      EXPECT_EQ(anycclCommRevoke(comm.handle(), 0), anycclSuccess);
    }
    EXPECT_EQ(sum(comm, 1, 1).code(), Code::aborted);
    EXPECT_EQ(anycclSequenceBegin(comm.handle(), ANYCCL_NO_TIMEOUT), anycclAborted);
    EXPECT_EQ(split(comm).code(), Code::aborted);
    anycclConfig_t config =
        ANYCCL_CONFIG_INITIALIZER;  // without blocking, those that are left carry on
    config.blocking = 0;
    anycclComm_t made = nullptr;
    anycclResult_t state = anycclInProgress;
    EXPECT_EQ(anycclCommShrink(comm.handle(), nullptr, 0, &made, &config, ANYCCL_SHRINK_ABORT),
              anycclInProgress);
    while (state == anycclInProgress)
      ASSERT_EQ(anycclCommGetAsyncError(made, &state), anycclSuccess);
    EXPECT_EQ(state, anycclSuccess);
    anycclCommDestroy(made);
  });
}

TEST_P(Sequences, of_two_threads_that_split_do_not_mix) {
  run_ranks(3, [](Communicator& comm) {
    const auto splits = [&] {
      for (int i = 0; i < 20; ++i) EXPECT_OK(split(comm));
    };
    std::thread other(splits);
    splits();
    other.join();
    EXPECT_OK(sum(comm, 3, 1));
  });
}

TEST_P(Sequences, have_creations_that_do_not_block_as_a_part) {
  run_ranks(3, [](Communicator& comm) {
    ASSERT_EQ(anycclSequenceBegin(comm.handle(), ANYCCL_NO_TIMEOUT), anycclSuccess);
    ASSERT_OK(sum(comm, 3, 1.0F));
    for (const bool waits : {true, false}) {
      anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      anycclComm_t part = nullptr;
      ASSERT_EQ(anycclCommSplit(comm.handle(), 0, 0, &part, &config), anycclInProgress);
      if (!waits) {  // it ends first
        ASSERT_EQ(anycclSequenceEnd(comm.handle()), anycclSuccess);
      }
      anycclResult_t state = anycclInProgress;
      while (state == anycclInProgress) {
        ASSERT_EQ(anycclCommGetAsyncError(part, &state), anycclSuccess);
        std::this_thread::yield();
      }
      ASSERT_EQ(state, anycclSuccess) << anycclGetLastError(part);
      ASSERT_OK(sum(comm, 3, 2.0F));
      ASSERT_EQ(anycclCommDestroy(part), anycclSuccess);
    }
    EXPECT_EQ(anycclSequenceEnd(comm.handle()), anycclInvalidUsage);
    std::thread([&] { ASSERT_OK(sum(comm, 3, 3.0F)); }).join();
  });
}

TEST_P(Sequences, of_creations_that_do_not_block_refuse_other_calls) {
  std::atomic<bool> refused = false;
  run_ranks(2, [&](Communicator& comm) {
    anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    anycclComm_t made = nullptr, another = nullptr;
    while (comm.rank() == Rank{1} && !refused) std::this_thread::yield();
    EXPECT_EQ(anycclCommSplit(comm.handle(), 0, 0, &made, &config), anycclInProgress);
    if (comm.rank() == Rank{0}) {  // whose split waits for the other rank
      EXPECT_EQ(anycclCommSplit(comm.handle(), 0, 0, &another, &config), anycclInvalidUsage);
      EXPECT_NE(std::string(anycclGetLastError(comm.handle())).find("wait until it is ready"),
                std::string::npos);
      EXPECT_EQ(sum(comm, 1, 1).code(), Code::invalid_usage);
      refused = true;
    }
    anycclResult_t state = anycclInProgress;
    while (state == anycclInProgress)
      ASSERT_EQ(anycclCommGetAsyncError(made, &state), anycclSuccess);
    EXPECT_EQ(state, anycclSuccess);
    EXPECT_OK(sum(comm, 1, 1));
    anycclCommDestroy(made);
  });
}

}  // namespace
}  // namespace anyccl::test
