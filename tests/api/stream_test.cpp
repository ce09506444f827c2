// Streams and events: what one rank can see of them.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "support/streams.hpp"
#include "support/usage.hpp"

namespace anyccl::test {
namespace {

using Clock = std::chrono::steady_clock;

void expect_done(const Result<bool>& query, bool done) {
  ASSERT_TRUE(query.ok()) << query.status().message();
  EXPECT_EQ(*query, done);
}

TEST(Streams, do_their_work_in_order) {
  std::vector<int> order;
  Stream stream = new_stream();
  for (int i = 0; i < 1000; ++i) ASSERT_OK(stream.run([&, i] { order.push_back(i); }));
  ASSERT_OK(stream.synchronize());
  ASSERT_EQ(order.size(), 1000U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Streams, are_not_done_and_then_done) {
  Stream stream = new_stream();
  Event event = new_event();
  Door door;
  expect_done(stream.query(), true);
  ASSERT_OK(stream.run([&] { EXPECT_TRUE(door.pass()); }));
  ASSERT_OK(event.record(stream));
  expect_done(event.query(), false);
  const Status open = event.synchronize_for(1);
  EXPECT_EQ(open.code(), Code::in_progress);
  EXPECT_EQ(open.message(), "the event is not complete");
  expect_done(stream.query(), false);
  door.open();
  ASSERT_OK(event.synchronize());
  expect_done(event.query(), true);
  ASSERT_OK(event.synchronize_for(0));
  ASSERT_OK(stream.synchronize());
  expect_done(stream.query(), true);
}

// The stream's thread may be interrupted at any place after it has told of the event.
TEST(Streams, whose_last_event_is_complete_are_done) {
  Stream stream = new_stream();
  Event event = new_event();
  for (int i = 0; i < 2000; ++i) {
    ASSERT_OK(event.record(stream));
    ASSERT_OK(event.synchronize());
    expect_done(stream.query(), true);
  }
}

TEST(Streams, wait_for_each_other) {
  Stream writer = new_stream(), reader = new_stream();
  Event written = new_event();
  Door door;
  int value = 0, seen = -1;
  ASSERT_OK(writer.run([&] {
    EXPECT_TRUE(door.pass());
    value = 42;
  }));
  ASSERT_OK(written.record(writer));
  ASSERT_OK(reader.wait(written));
  ASSERT_OK(reader.run([&] { seen = value; }));
  expect_done(reader.query(), false);
  door.open();
  ASSERT_OK(reader.synchronize());
  EXPECT_EQ(seen, 42);
}

TEST(Streams, wait_for_what_was_recorded_when_they_were_told) {
  Stream busy = new_stream(), other = new_stream();
  Event event = new_event();
  Door door;
  ASSERT_OK(event.record(busy));
  ASSERT_OK(other.wait(event));
  ASSERT_OK(busy.run([&] { EXPECT_TRUE(door.pass()); }));
  ASSERT_OK(event.record(busy));
  ASSERT_OK(other.synchronize());
  expect_done(event.query(), false);
  door.open();
  ASSERT_OK(busy.synchronize());
  expect_done(event.query(), true);
}

TEST(Streams, take_functions_with_state_of_their_own) {
  Stream stream = new_stream();
  auto kept = std::make_shared<int>(7);
  const std::weak_ptr<int> watch = kept;
  int seen = 0;
  ASSERT_OK(stream.run([kept = std::move(kept), &seen] { seen = *kept; }));
  ASSERT_OK(stream.synchronize());
  EXPECT_EQ(seen, 7);
  EXPECT_TRUE(watch.expired());
}

TEST(Events, that_were_never_recorded_are_complete) {
  Event event = new_event();
  Stream stream = new_stream();
  expect_done(event.query(), true);
  ASSERT_OK(event.synchronize());
  ASSERT_OK(stream.wait(event));
  ASSERT_OK(stream.synchronize());
  ASSERT_OK(event.record(stream));
  const auto time = elapsed_ms(event, new_event());
  EXPECT_EQ(time.status().code(), Code::invalid_usage);
  EXPECT_NE(time.status().message().find("end event was never recorded"), std::string::npos)
      << time.status().message();
}

TEST(Events, tell_the_time_between_them) {
  Stream stream = new_stream();
  Event start = new_event(), end = new_event();
  const auto before = Clock::now();
  ASSERT_OK(start.record(stream));
  ASSERT_OK(stream.run(busy_for(std::chrono::milliseconds(20))));
  ASSERT_OK(end.record(stream));
  ASSERT_OK(end.synchronize());
  const std::chrono::duration<float, std::milli> all = Clock::now() - before;
  const auto time = elapsed_ms(start, end);
  ASSERT_TRUE(time.ok()) << time.status().message();
  EXPECT_GE(*time, 20.0F);
  EXPECT_LE(*time, all.count());
}

TEST(Events, tell_no_time_before_they_are_complete) {
  Stream stream = new_stream();
  Event start = new_event(), end = new_event();
  Door door;
  ASSERT_OK(start.record(stream));
  ASSERT_OK(stream.run([&] { EXPECT_TRUE(door.pass()); }));
  ASSERT_OK(end.record(stream));
  EXPECT_EQ(elapsed_ms(start, end).status().code(), Code::in_progress);
  door.open();
  ASSERT_OK(stream.synchronize());
  EXPECT_TRUE(elapsed_ms(start, end).ok());
}

// --- errors --------------------------------------------------------------------------------------

void expect_words(anycclResult_t got, anycclResult_t want, const std::vector<std::string>& words) {
  EXPECT_EQ(got, want) << anycclGetLastError(nullptr);
  const std::string text = anycclGetLastError(nullptr);
  for (const std::string& w : words)
    EXPECT_NE(text.find(w), std::string::npos) << "'" << w << "' is not in: " << text;
}

TEST(StreamErrors, null_handles) {
  const Stream stream = new_stream();
  const Event event = new_event();
  float ms = 0;
  const auto refused = [](anycclResult_t result, const char* what) {
    expect_words(result, anycclInvalidArgument, {what, "NULL"});
  };
  refused(anycclStreamCreate(nullptr), "stream");
  refused(anycclStreamSynchronize(nullptr), "stream");
  refused(anycclStreamQuery(nullptr), "stream");
  refused(anycclStreamWaitEvent(nullptr, event.handle()), "stream");
  refused(anycclStreamWaitEvent(stream.handle(), nullptr), "event");
  refused(anycclLaunchHostFunc(
              nullptr, [](void*) {}, nullptr),
          "stream");
  refused(anycclLaunchHostFunc(stream.handle(), nullptr, nullptr), "fn");
  refused(anycclEventCreate(nullptr), "event");
  refused(anycclEventRecord(nullptr, stream.handle()), "event");
  refused(anycclEventRecord(event.handle(), nullptr), "stream");
  refused(anycclEventQuery(nullptr), "event");
  refused(anycclEventSynchronize(nullptr), "event");
  refused(anycclEventSynchronizeFor(nullptr, 1), "event");
  refused(anycclEventElapsedTime(nullptr, event.handle(), event.handle()), "ms");
  refused(anycclEventElapsedTime(&ms, nullptr, event.handle()), "start");
  refused(anycclEventElapsedTime(&ms, event.handle(), nullptr), "end");
  EXPECT_EQ(anycclStreamDestroy(nullptr), anycclSuccess);
  EXPECT_EQ(anycclEventDestroy(nullptr), anycclSuccess);
}

TEST(StreamErrors, wrong_calls_are_refused_at_once_and_leave_the_stream_alone) {
  run_ranks(1, [](Communicator& comm) {
    Stream stream = new_stream();
    expect_words(anycclAllReduce(nullptr, nullptr, 3, anycclFloat32, anycclSum, comm.handle(),
                                 stream.handle()),
                 anycclInvalidArgument, {"sendbuff", "3"});
    expect_done(stream.query(), true);
    std::vector<float> x(3, 1.0F);
    ASSERT_OK(comm.all_reduce(view(x), view(x), ReduceOp::sum, stream).status());
    ASSERT_OK(stream.synchronize());
  });
}

void expect_thrown(const Status& status) {
  EXPECT_EQ(status.code(), Code::invalid_usage);
  EXPECT_NE(status.message().find("out of soup"), std::string::npos) << status.message();
}

TEST(StreamErrors, a_function_that_throws_is_an_error_and_later_work_runs) {
  Stream stream = new_stream();
  bool ran = false;
  ASSERT_OK(stream.run([] { throw std::runtime_error("out of soup"); }));
  ASSERT_OK(stream.run([&] { ran = true; }));
  expect_thrown(stream.synchronize());
  EXPECT_TRUE(ran);
  expect_thrown(stream.query().status());
}

TEST(StreamErrors, travel_with_events) {
  Stream first = new_stream(), second = new_stream();
  Event event = new_event();
  ASSERT_OK(first.run([] { throw std::runtime_error("out of soup"); }));
  ASSERT_OK(event.record(first));
  ASSERT_OK(second.wait(event));
  expect_thrown(second.synchronize());
  expect_thrown(event.synchronize());
  expect_thrown(event.synchronize_for(1000));
  expect_thrown(event.query().status());
}

TEST(StreamErrors, a_function_cannot_wait_for_its_own_stream) {
  Stream stream = new_stream();
  Status inside;
  ASSERT_OK(stream.run([&] { inside = stream.synchronize(); }));
  ASSERT_OK(stream.synchronize());
  EXPECT_EQ(inside.code(), Code::invalid_usage);
}

/// In a forked child: every call says why, none waits.
int child_of_a_busy_rank(Stream& stream, Event& event) {
  ::alarm(10);
  float ms = 0;
  const auto refused = [](anycclResult_t result) {
    expect_words(result, anycclInvalidUsage, {"fork"});
  };
  refused(anycclStreamSynchronize(stream.handle()));
  refused(anycclStreamQuery(stream.handle()));
  refused(anycclStreamWaitEvent(stream.handle(), event.handle()));
  refused(anycclLaunchHostFunc(
      stream.handle(), [](void*) {}, nullptr));
  refused(anycclEventRecord(event.handle(), stream.handle()));
  refused(anycclEventQuery(event.handle()));
  refused(anycclEventSynchronize(event.handle()));
  refused(anycclEventSynchronizeFor(event.handle(), 1));
  refused(anycclEventElapsedTime(&ms, event.handle(), event.handle()));
  stream = {};
  event = {};
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST(StreamErrors, after_fork_everything_is_refused_and_nothing_waits) {
  Stream stream = new_stream();
  Event event = new_event();
  Door door;
  ASSERT_OK(stream.run([&] { EXPECT_TRUE(door.pass()); }));
  ASSERT_OK(event.record(stream));
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(child_of_a_busy_rank(stream, event));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  door.open();
  ASSERT_OK(stream.synchronize());
}

// --- the end of handles --------------------------------------------------------------------------

/// How many threads there are before a test begins. With the first thread of a program,
/// ThreadSanitizer starts one of its own.
std::ptrdiff_t threads_before() {
  std::thread([] {}).join();
  return threads();
}

TEST(StreamEnd, what_was_put_in_before_is_still_done) {
  const auto before = threads_before();
  Door door, done;
  {
    Stream stream = new_stream();
    Event event = new_event();
    ASSERT_OK(stream.run([&] { EXPECT_TRUE(door.pass()); }));
    ASSERT_OK(event.record(stream));
    ASSERT_OK(stream.wait(event));
    ASSERT_OK(stream.run([&] { done.open(); }));
  }
  door.open();
  EXPECT_TRUE(done.pass());
  EXPECT_LE(threads(before), before);
}

TEST(StreamEnd, leaves_no_thread) {
  const auto before = threads_before();
  for (int i = 0; i < 200; ++i) {
    Stream stream = new_stream();
    if (i % 2 == 0) ASSERT_OK(stream.run([] {}));
    if (i % 4 == 0) ASSERT_OK(stream.synchronize());
  }
  EXPECT_LE(threads(before), before);
}

TEST(StreamEnd, a_stream_without_work_has_no_thread) {
  const auto before = threads_before();
  const Stream stream = new_stream();
  EXPECT_LE(threads(), before);
}

// --- one rank's communicator ---------------------------------------------------------------------

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// A rank alone has no transport to sleep in.
class StreamWaiting : public testing::TestWithParam<int> {};
TEST_P(StreamWaiting, behind_a_closed_gate_burns_no_core) {
  const double before = cpu_seconds();
  const auto since = Clock::now();
  run_ranks(GetParam(), [](Communicator& comm) {
    std::vector<Stream> streams;
    for (int i = 0; i < 3; ++i) streams.push_back(new_stream());
    std::vector<std::vector<float>> x(3, std::vector<float>(10, 1.0F));
    Door door;  // never opened: the way in which a stream does nothing for a while
    ASSERT_OK(streams[0].run([&] { EXPECT_FALSE(door.pass(1)); }));
    for (std::size_t i = 0; i < 3; ++i)
      ASSERT_OK(comm.all_reduce(view(x[i]), view(x[i]), ReduceOp::sum, streams[i]).status());
    for (Stream& stream : streams) ASSERT_OK(stream.synchronize());
    for (const auto& result : x) EXPECT_EQ(result[9], static_cast<float>(comm.size()));
  });
  const std::chrono::duration<double> wall = Clock::now() - since;
  EXPECT_LT(cpu_seconds() - before, 0.5 * wall.count());
}
INSTANTIATE_TEST_SUITE_P(Ranks, StreamWaiting, testing::Values(1, 2));

TEST(StreamMessages, to_oneself_wait_for_both_sides) {
  run_ranks(1, [](Communicator& comm) {
    Stream sender = new_stream(), receiver = new_stream();
    Door door;
    std::vector<float> from(5, 0.0F), to(5, 0.0F);
    ASSERT_OK(sender.run([&] {
      EXPECT_TRUE(door.pass());
      from.assign(5, 3.0F);
    }));
    ASSERT_OK(comm.send(view(from), Rank{0}, sender).status());
    auto received = comm.recv(view(to), Rank{0}, receiver);
    ASSERT_TRUE(received.ok());
    expect_done(received->test(), false);
    door.open();
    ASSERT_OK(receiver.synchronize());
    EXPECT_EQ(to, std::vector<float>(5, 3.0F));
    ASSERT_OK(sender.synchronize());
  });
}

TEST(StreamMessages, to_oneself_are_complete_before_the_communicator_is_destroyed) {
  run_ranks(1, [](Communicator& comm) {
    Stream sender = new_stream(), receiver = new_stream();
    std::vector<float> from(5, 0.0F), to(5, 0.0F);
    for (Stream* stream : {&sender, &receiver})
      ASSERT_OK(stream->run(busy_for(std::chrono::milliseconds(10))));
    ASSERT_OK(sender.run([&] { from.assign(5, 3.0F); }));
    ASSERT_OK(comm.send(view(from), Rank{0}, sender).status());
    ASSERT_OK(comm.recv(view(to), Rank{0}, receiver).status());
    ASSERT_OK(comm.destroy());
    EXPECT_EQ(to, std::vector<float>(5, 3.0F));
    ASSERT_OK(sender.synchronize());
    ASSERT_OK(receiver.synchronize());
  });
}

TEST(StreamMessages, to_oneself_that_never_meet_end_with_the_communicator) {
  run_ranks(1, [](Communicator& comm) {
    Stream stream = new_stream();
    float x = 1;
    ASSERT_OK(comm.send({&x, 1, DType::f32}, Rank{0}, stream).status());
    ASSERT_OK(comm.destroy());
    EXPECT_EQ(stream.synchronize().code(), Code::invalid_usage);
  });
}

}  // namespace
}  // namespace anyccl::test
