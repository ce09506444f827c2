// What code of the program may do that the library calls: reduction functions, functions in streams
// and notified ones.

#include <atomic>
#include <stdexcept>

#include "support/streams.hpp"

namespace anyccl::test {
namespace {

/// What a call in a reduction function said.
struct Seen {
  std::function<anycclResult_t()> call;
  std::atomic<int> calls{0};
  anycclResult_t result = anycclSuccess;
  std::string text;
};

void sum_and_call(const void* in, void* inout, size_t count, anycclDataType_t, void* userdata) {
  for (size_t i = 0; i < count; ++i)
    static_cast<float*>(inout)[i] += static_cast<const float*>(in)[i];
  auto& seen = *static_cast<Seen*>(userdata);
  if (seen.calls++ > 0) return;
  seen.result = seen.call();
  seen.text = anycclGetLastError(nullptr);
}

using Made = std::function<std::function<anycclResult_t()>(Communicator&)>;

/// Two ranks reduce with an operator that makes a call, and go on.
void expect_refused_in_reductions(const Made& make) {
  run_ranks(2, [&](Communicator& comm) {
    Seen seen;
    seen.call = make(comm);
    anycclRedOp_t op{};
    ASSERT_EQ(anycclRedOpCreate(&op, sum_and_call, &seen, comm.handle()), anycclSuccess);
    std::vector<float> x(3, 1.0F);
    for (int round = 0; round < 2; ++round)  // each rank adds in one of them
      ASSERT_EQ(
          anycclReduce(x.data(), x.data(), 3, anycclFloat32, op, round, comm.handle(), nullptr),
          anycclSuccess);
    ASSERT_GT(seen.calls, 0);
    EXPECT_EQ(seen.result, anycclInvalidUsage);
    EXPECT_NE(seen.text.find("reduction function"), std::string::npos) << seen.text;
    ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
  });
}

TEST(ReductionFunctions, cannot_call_a_collective) {
  expect_refused_in_reductions(
      [](Communicator& comm) { return [c = comm.handle()] { return anycclBarrier(c, nullptr); }; });
}
/// These would look at communicators whose lock this thread has.
TEST(ReductionFunctions, cannot_ask_for_the_metrics_of_the_process) {
  expect_refused_in_reductions([](Communicator&) {
    return [] {
      const char* text = nullptr;
      return anycclMetrics(&text);
    };
  });
}
TEST(ReductionFunctions, cannot_issue) {
  expect_refused_in_reductions([](Communicator& comm) {
    return [c = comm.handle()] {
      float x = 0;
      anycclWork_t work = nullptr;
      const anycclCall_t call = call_of(anycclCollAllReduce, {&x, 1});
      return anycclIssue(&call, c, &work);
    };
  });
}
TEST(ReductionFunctions, cannot_reduce_with_an_operator_of_the_communicator) {
  expect_refused_in_reductions([](Communicator& comm) {
    return [c = comm.handle()] {
      float x = 0, y = 0;
      return anycclReduceLocal(&x, &y, 1, anycclFloat32, anycclSum, c);
    };
  });
}
TEST(ReductionFunctions, cannot_abort_or_destroy) {
  expect_refused_in_reductions(
      [](Communicator& comm) { return [c = comm.handle()] { return anycclCommAbort(c); }; });
  expect_refused_in_reductions(
      [](Communicator& comm) { return [c = comm.handle()] { return anycclCommDestroy(c); }; });
}
TEST(ReductionFunctions, cannot_wait_for_streams_and_works) {
  Stream stream = new_stream();
  expect_refused_in_reductions(
      [&](Communicator&) { return [&] { return anycclStreamSynchronize(stream.handle()); }; });
  run_ranks(1, [](Communicator& comm) {
    float x = 1;
    anycclWork_t work = nullptr;
    const anycclCall_t call = call_of(anycclCollAllReduce, {&x, 1});
    ASSERT_EQ(anycclIssue(&call, comm.handle(), &work), anycclSuccess);
    expect_refused_in_reductions(
        [&](Communicator&) { return [&] { return anycclWorkWait(work); }; });
    ASSERT_EQ(anycclWorkFree(work), anycclSuccess);
  });
}
TEST(ReductionFunctions, may_use_the_operators_of_the_library) {
  run_ranks(2, [&](Communicator& comm) {
    const auto add = [](const void* in, void* inout, size_t count, anycclDataType_t type,
                        void* data) {
      *static_cast<anycclResult_t*>(data) =
          anycclReduceLocal(in, inout, count, type, anycclSum, nullptr);
    };
    anycclRedOp_t op{};
    anycclResult_t result = anycclSuccess;
    ASSERT_EQ(anycclRedOpCreate(&op, add, &result, comm.handle()), anycclSuccess);
    float x = 1;
    ASSERT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat32, op, comm.handle(), nullptr), anycclSuccess);
    EXPECT_EQ(result, anycclSuccess);
    EXPECT_EQ(x, 2.0F);
  });
}

void expect_own_stream(const Status& status) {
  EXPECT_EQ(status.code(), Code::invalid_usage);
  EXPECT_NE(status.message().find("own stream"), std::string::npos) << status.message();
}
Status status_of(anycclResult_t result) {
  return {static_cast<Code>(result), anycclGetLastError(nullptr)};
}

TEST(FunctionsInStreams, cannot_wait_for_works_behind_them) {
  run_ranks(2, [](Communicator& comm) {
    Stream stream = new_stream();
    Door issued;
    float x = 1;
    anycclWork_t work = nullptr;
    Status alone, all, any;
    size_t index = 0;
    ASSERT_OK(stream.run([&] {
      ASSERT_TRUE(issued.pass());
      alone = status_of(anycclWorkWait(work));
      all = status_of(anycclWorkWaitAll(&work, 1));
      any = status_of(anycclWorkWaitAny(&work, 1, &index));
    }));
    anycclCall_t call = call_of(anycclCollAllReduce, {&x, 1});
    call.stream = stream.handle();
    ASSERT_EQ(anycclIssue(&call, comm.handle(), &work), anycclSuccess);
    issued.open();
    ASSERT_OK(stream.synchronize());
    for (const Status& one : {alone, all, any}) expect_own_stream(one);
    EXPECT_EQ(x, 2.0F);
    ASSERT_EQ(anycclWorkFree(work), anycclSuccess);
  });
}
TEST(FunctionsInStreams, cannot_make_calls_that_wait_for_those_behind_them) {
  run_ranks(2, [](Communicator& comm) {
    Stream stream = new_stream();
    Door issued;
    float x = 1;
    const anycclComm_t c = comm.handle();
    Status barrier, split, finalize, destroy;
    ASSERT_OK(stream.run([&] {
      ASSERT_TRUE(issued.pass());
      barrier = status_of(anycclBarrier(c, nullptr));
      anycclComm_t part = nullptr;
      split = status_of(anycclCommSplit(c, 0, 0, &part, nullptr));
      finalize = status_of(anycclCommFinalize(c));
      destroy = status_of(anycclCommDestroy(c));
    }));
    ASSERT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat32, anycclSum, c, stream.handle()),
              anycclSuccess);
    issued.open();
    ASSERT_OK(stream.synchronize());
    for (const Status& one : {barrier, split, finalize, destroy}) expect_own_stream(one);
    EXPECT_EQ(x, 2.0F);
  });
}
TEST(FunctionsInStreams, cannot_exchange_with_neighbours_or_experts_behind_them) {
  run_ranks(2, [](Communicator& comm) {
    Stream stream = new_stream();
    Door issued;
    const anycclComm_t c = comm.handle();
    const int experts[] = {0, 1};
    const size_t ones[] = {1, 1}, displs[] = {0, sizeof(float)};
    const anycclDataType_t types[] = {anycclFloat32, anycclFloat32};
    float tokens[] = {1, 2}, rows[4] = {}, from[] = {1, 2}, to[2] = {};
    anycclRouting_t routing = nullptr, another = nullptr;
    anycclCoded_t coded = nullptr;
    ASSERT_EQ(anycclRoutingCreate(&routing, 2, 1, experts, 2, 0, 0, c), anycclSuccess);
    std::vector<Status> inside;
    ASSERT_OK(stream.run([&] {
      ASSERT_TRUE(issued.pass());
      inside = {status_of(anycclRoutingCreate(&another, 2, 1, experts, 2, 0, 0, c)),
                status_of(anycclDispatch(tokens, rows, 1, anycclFloat32, routing, c)),
                status_of(anycclCombine(rows, nullptr, tokens, 1, anycclFloat32, routing, c)),
                status_of(anycclCodedCreate(&coded, anycclCodecInt8, 1, 0, c)),
                status_of(anycclAllToAllw(from, ones, displs, types, to, ones, displs, types, c,
                                          nullptr))};
    }));
    ASSERT_EQ(anycclAllReduce(from, from, 2, anycclFloat32, anycclSum, c, stream.handle()),
              anycclSuccess);
    ASSERT_EQ(anycclSend(from, 1, anycclFloat32, 1 - index(comm.rank()), c, stream.handle()),
              anycclSuccess);
    issued.open();
    ASSERT_EQ(anycclRecv(to, 1, anycclFloat32, 1 - index(comm.rank()), c, nullptr), anycclSuccess);
    ASSERT_OK(stream.synchronize());
    for (const Status& one : inside) expect_own_stream(one);
    ASSERT_EQ(anycclRoutingDestroy(routing), anycclSuccess);
  });
}
TEST(FunctionsInStreams, cannot_send_where_a_send_is_behind_them) {
  run_ranks(1, [](Communicator& comm) {
    Stream stream = new_stream();
    Door issued;
    float x = 1, y = 0;
    const anycclComm_t c = comm.handle();
    Status send;
    ASSERT_OK(stream.run([&] {
      ASSERT_TRUE(issued.pass());
      send = status_of(anycclSend(&x, 1, anycclFloat32, 0, c, nullptr));
      ASSERT_EQ(anycclBarrier(c, nullptr), anycclSuccess);  // does not wait for messages
    }));
    ASSERT_EQ(anycclSend(&x, 1, anycclFloat32, 0, c, stream.handle()), anycclSuccess);
    issued.open();
    ASSERT_EQ(anycclRecv(&y, 1, anycclFloat32, 0, c, nullptr), anycclSuccess);
    ASSERT_OK(stream.synchronize());
    expect_own_stream(send);
  });
}
TEST(FunctionsInStreams, cannot_put_or_signal_where_a_send_is_behind_them) {
  run_ranks(2, [](Communicator& comm) {
    Stream stream = new_stream();
    Door issued;
    float x = 1, y = 0;
    const anycclComm_t c = comm.handle();
    const int peer = 1 - index(comm.rank());
    Status signal;
    ASSERT_OK(stream.run([&] {
      ASSERT_TRUE(issued.pass());
      signal = status_of(anycclSignal(peer, 0, 0, 0, c, nullptr));
    }));
    ASSERT_EQ(anycclSend(&x, 1, anycclFloat32, peer, c, stream.handle()), anycclSuccess);
    issued.open();
    ASSERT_EQ(anycclRecv(&y, 1, anycclFloat32, peer, c, nullptr), anycclSuccess);
    ASSERT_OK(stream.synchronize());
    expect_own_stream(signal);
  });
}
TEST(FunctionsInStreams, cannot_receive_where_a_receive_is_behind_them) {
  run_ranks(1, [](Communicator& comm) {
    Stream stream = new_stream();
    Door issued;
    float x = 1, y = 0, z = 0;
    const anycclComm_t c = comm.handle();
    Status same, other;
    ASSERT_OK(stream.run([&] {
      ASSERT_TRUE(issued.pass());
      same = status_of(anycclRecv(&z, 1, anycclFloat32, 0, c, nullptr));
      anycclCall_t call = call_of(anycclCollRecv, {&z, 1});
      call.tag = 5;
      other = status_of(anycclRun(&call, c));
    }));
    ASSERT_EQ(anycclRecv(&y, 1, anycclFloat32, ANYCCL_ANY_SOURCE, c, stream.handle()),
              anycclSuccess);
    issued.open();
    ASSERT_EQ(anycclSend(&x, 1, anycclFloat32, 0, c, nullptr), anycclSuccess);
    ASSERT_OK(stream.synchronize());
    for (const Status& one : {same, other}) expect_own_stream(one);
    EXPECT_EQ(y, 1.0F);
  });
}
TEST(FunctionsInStreams, may_ask_and_revoke_whatever_is_behind_them) {
  run_ranks(2, [](Communicator& comm) {
    Stream stream = new_stream();
    Door issued;
    float x = 1;
    const anycclComm_t c = comm.handle();
    anycclResult_t metrics{}, completed{}, revoked{};
    ASSERT_OK(stream.run([&] {
      ASSERT_TRUE(issued.pass());
      const char* text = nullptr;
      uint64_t here = 0;
      metrics = anycclCommMetrics(c, &text);
      completed = anycclCommCompleted(c, &here, nullptr);
      revoked = anycclCommRevoke(c, ANYCCL_REVOKE_DEFAULT);
    }));
    ASSERT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat32, anycclSum, c, stream.handle()),
              anycclSuccess);
    issued.open();
    EXPECT_EQ(stream.synchronize().code(), Code::aborted);
    for (const anycclResult_t one : {metrics, completed, revoked}) EXPECT_EQ(one, anycclSuccess);
  });
}
TEST(FunctionsInStreams, cannot_wait_for_events_behind_them) {
  Stream stream = new_stream(), other = new_stream();
  Event event = new_event(), elsewhere = new_event();
  Door recorded;
  Status mine, theirs;
  ASSERT_OK(stream.run([&] {
    ASSERT_TRUE(recorded.pass());
    mine = event.synchronize();
    theirs = elsewhere.synchronize();
  }));
  ASSERT_OK(event.record(stream));
  ASSERT_OK(elsewhere.record(other));
  recorded.open();
  ASSERT_OK(stream.synchronize());
  expect_own_stream(mine);
  EXPECT_OK(theirs);
}
TEST(FunctionsInStreams, may_make_calls_that_nothing_of_their_stream_keeps_back) {
  run_ranks(2, [](Communicator& comm) {
    Stream stream = new_stream();
    float x = 1;
    Status inside;
    ASSERT_OK(stream.run([&] {
      inside =
          status_of(anycclAllReduce(&x, &x, 1, anycclFloat32, anycclSum, comm.handle(), nullptr));
    }));
    ASSERT_OK(stream.synchronize());
    EXPECT_EQ(inside.code(), Code::ok);
    EXPECT_EQ(x, 2.0F);
  });
}

TEST(NotifiedFunctions, that_throw_do_not_end_the_program) {
  run_ranks(1, [](Communicator& comm) {
    float x = 1, y = 0;
    Door told;
    int calls = 0;
    anycclWork_t work = nullptr;
    const anycclCall_t call = call_of(anycclCollRecv, {&y, 1});
    ASSERT_EQ(anycclIssue(&call, comm.handle(), &work), anycclSuccess);
    const auto open_and_throw = [](void* door) {
      static_cast<Door*>(door)->open();
      throw std::runtime_error("of no use");
    };
    const auto count_and_throw = [](void* count) { throw ++*static_cast<int*>(count); };
    ASSERT_EQ(anycclWorkNotify(work, open_and_throw, &told), anycclSuccess);
    ASSERT_EQ(anycclSend(&x, 1, anycclFloat32, 0, comm.handle(), nullptr), anycclSuccess);
    ASSERT_TRUE(told.pass());
    ASSERT_EQ(anycclWorkWait(work), anycclSuccess);
    EXPECT_EQ(anycclWorkNotify(work, count_and_throw, &calls), anycclSuccess);  // now
    EXPECT_EQ(calls, 1);
    ASSERT_EQ(anycclWorkFree(work), anycclSuccess);
  });
}

}  // namespace
}  // namespace anyccl::test
