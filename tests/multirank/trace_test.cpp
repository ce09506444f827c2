// What ranks do is in their traces, once and with the right bytes: ANYCCL_TRACE.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "anyccl/window.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"
#include "trace/traces.hpp"

namespace anyccl::test {
namespace {

constexpr int kRanks = 3;
using Variables = Environment::Variables;

/// Of the ranks of `body`, by rank.
std::vector<cli::RankTrace> traces_of(int ranks, const Body& body, const char* transport = "") {
  const TemporaryFolder folder;
  expect_all_passed(run_processes(ranks, body, [&](int) {
    return Variables{{"ANYCCL_TRACE", folder.path()}, {"ANYCCL_TRANSPORT", transport}};
  }));
  auto traces = cli::read_traces({folder.path()});
  EXPECT_OK(traces.status());
  return traces.ok() ? *std::move(traces) : std::vector<cli::RankTrace>();
}

/// "all_reduce 4", with how often it is there.
std::map<std::string, int> counted(const cli::RankTrace& trace) {
  std::map<std::string, int> counts;
  for (const cli::TracedCall& call : trace.calls)
    ++counts[call.kind + " " + std::to_string(call.bytes)];
  return counts;
}

void expect_in_order(const cli::TracedCall& call) {
  EXPECT_GT(call.issued_ns, 0) << call.details;
  EXPECT_GE(call.started_ns, call.issued_ns) << call.details;
  EXPECT_GE(call.ended_ns, call.started_ns) << call.details;
}

class Traced : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, Traced, testing::Values("shm", "tcp"),
                         [](const auto& transport) { return std::string(transport.param); });

TEST_P(Traced, program_is_in_the_traces_of_its_ranks_with_each_operation_once) {
  constexpr std::size_t kLong = 100000;
  const auto traces = traces_of(
      kRanks,
      [](Communicator& comm) {
        std::vector<float> x(kLong, 1.0F), y(kLong), one(1, 1.0F);
        const View short_view = view(one);
        ASSERT_OK(wait(comm.all_reduce(view(x), view(y), ReduceOp::sum)));
        for (int i = 0; i < 5; ++i)
          ASSERT_OK(wait(comm.all_reduce(short_view, short_view, ReduceOp::max)));
        ASSERT_OK(wait(comm.broadcast(view(x), view(x), Rank{1})));
        ASSERT_OK(wait(comm.barrier()));
        const int next = (index(comm.rank()) + 1) % kRanks;
        const int before = (index(comm.rank()) + kRanks - 1) % kRanks;
        auto sent = comm.send(view(x), Rank{next});
        ASSERT_OK(wait(comm.recv(view(y), Rank{before})));
        ASSERT_OK(wait(std::move(sent)));
      },
      GetParam());
  ASSERT_EQ(traces.size(), static_cast<std::size_t>(kRanks));
  const std::string bytes = std::to_string(kLong * sizeof(float));
  for (int r = 0; r < kRanks; ++r) {
    const cli::RankTrace& trace = traces[static_cast<std::size_t>(r)];
    EXPECT_EQ(trace.rank, r);
    EXPECT_EQ(trace.left_out, 0U);
    EXPECT_EQ(counted(trace), (std::map<std::string, int>{{"all_reduce " + bytes, 1},
                                                          {"all_reduce 4", 5},
                                                          {"broadcast " + bytes, 1},
                                                          {"barrier 0", 1},
                                                          {"send " + bytes, 1},
                                                          {"recv " + bytes, 1}}));
    for (const cli::TracedCall& call : trace.calls) expect_in_order(call);
  }
}

TEST(Trace, has_puts_signals_waits_for_them_and_probes) {
  const auto traces = traces_of(2, [](Communicator& comm) {
    const Rank other{1 - index(comm.rank())};
    std::vector<float> memory(3), x(3, 1.0F);
    auto window = Window::create(comm, memory);
    ASSERT_OK(window.status());
    ASSERT_OK(window->put_signal(view(x), other, 0));
    ASSERT_OK(signal(comm, other));
    ASSERT_OK(wait_signal(comm, {{other, 2}}));
    ASSERT_OK(window->deregister());
    ASSERT_OK(wait(comm.send(view(x), other)));
    ASSERT_OK(probe_message(comm, other).status());
    ASSERT_OK(wait(comm.recv(view(x), other)));
  });
  ASSERT_EQ(traces.size(), 2U);
  for (const cli::RankTrace& trace : traces) {
    auto counts = counted(trace);
    for (const char* call :
         {"put 12", "signal 0", "signal_wait 0", "probe 0", "send 12", "recv 12"})
      EXPECT_EQ(counts[call], 1) << call;
    for (const cli::TracedCall& call : trace.calls) expect_in_order(call);
  }
}

TEST(Trace, says_which_stream_has_queued_an_operation) {
  const auto traces = traces_of(2, [](Communicator& comm) {
    std::vector<float> x(2, 1.0F), y(2, 1.0F);
    auto first = Stream::create(), second = Stream::create();
    ASSERT_OK(first.status());
    ASSERT_OK(second.status());
    ASSERT_OK(wait(comm.barrier()));
    ASSERT_OK(comm.all_reduce(view(x), view(x), ReduceOp::sum, *first).status());
    ASSERT_OK(comm.all_reduce(view(y), view(y), ReduceOp::max, *second).status());
    ASSERT_OK(first->synchronize());
    ASSERT_OK(second->synchronize());
  });
  ASSERT_EQ(traces.size(), 2U);
  for (const cli::RankTrace& trace : traces) {
    ASSERT_EQ(trace.calls.size(), 3U);
    std::set<int> tracks;
    for (int stream = 0; stream < 3; ++stream) {
      const cli::TracedCall& call = trace.calls[static_cast<std::size_t>(stream)];
      EXPECT_EQ(call.stream, stream) << call.details;
      tracks.insert(call.track);
    }
    EXPECT_EQ(tracks.size(), 3U);
  }
}

/// The thread of a stream waits for its operations; that hides nothing from the program.
TEST(Trace, of_a_stream_has_the_waits_of_the_program_only) {
  constexpr int kTimes = 20;
  const auto traces = traces_of(2, [](Communicator& comm) {
    std::vector<float> x(2, 1.0F);
    auto stream = Stream::create();
    auto event = Event::create();
    ASSERT_OK(stream.status());
    ASSERT_OK(event.status());
    ASSERT_OK(comm.all_reduce(view(x), view(x), ReduceOp::max, *stream).status());
    while (!*stream->query()) std::this_thread::yield();
    // Each wait begins before the operation can, unless this thread is held up for 5 ms: one of
    // the 20 waits of a kind that is in time is enough, on a busy machine, too.
    for (int i = 0; i < 2 * kTimes; ++i) {
      ASSERT_OK(stream->run([] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }));
      ASSERT_OK(comm.all_reduce(view(x), view(x), ReduceOp::sum, *stream).status());
      ASSERT_OK(event->record(*stream));
      ASSERT_OK(i % 2 == 0 ? stream->synchronize() : event->synchronize());
    }
  });
  ASSERT_EQ(traces.size(), 2U);
  for (const cli::RankTrace& trace : traces) {
    ASSERT_EQ(trace.calls.size(), 1U + 2 * kTimes);
    EXPECT_EQ(trace.calls[0].awaited_ns, 0) << "no thread has waited for it";
    std::array<int, 2> awaited{};
    for (std::size_t i = 1; i < trace.calls.size(); ++i)
      awaited[i % 2] += trace.calls[i].awaited_ns != 0 ? 1 : 0;
    EXPECT_GT(awaited[0], 0) << "of waits for events";
    EXPECT_GT(awaited[1], 0) << "of waits for the stream";
  }
}

TEST(Trace, of_a_split_is_a_file_of_its_own) {
  const auto traces = traces_of(2, [](Communicator& comm) {
    CommunicatorConfig config;
    config.name = "half";
    auto half = comm.split(0, index(comm.rank()), config);
    ASSERT_OK(half.status());
    ASSERT_OK(wait(half->barrier()));
  });
  ASSERT_EQ(traces.size(), 4U);
  EXPECT_EQ(std::count_if(traces.begin(), traces.end(),
                          [](const cli::RankTrace& trace) { return trace.name == "half"; }),
            2);
}

TEST(Trace, is_written_at_exit_and_after_a_failure) {
  const auto traces = traces_of(2, [](Communicator& comm) {
    std::vector<float> x(1, 1.0F);
    auto never = comm.recv(view(x), Rank{0}, {}, 9);
    const Status met = wait(comm.barrier());
    if (comm.rank() == Rank{0}) {
      ASSERT_OK(met);
      ASSERT_OK(comm.abort());  // rank 1 may hear of that before it knows that all have come
    }
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  });
  ASSERT_EQ(traces.size(), 2U);
  for (const cli::RankTrace& trace : traces) {
    EXPECT_EQ(counted(trace)["barrier 0"], 1);
    EXPECT_EQ(counted(trace)["recv 4"], 1);
  }
}

TEST(Trace, tells_calls_that_block_from_those_that_nobody_waits_for) {
  const auto traces = traces_of(2, [](Communicator& comm) {
    const Rank other{1 - index(comm.rank())};
    std::vector<float> x(1, 1.0F), y(1);
    auto received = comm.recv(view(y), other);
    ASSERT_OK(received.status());
    ASSERT_EQ(anycclBarrier(comm.handle(), nullptr), anycclSuccess);
    ASSERT_EQ(anycclSend(x.data(), 1, anycclFloat32, index(other), comm.handle(), nullptr),
              anycclSuccess);
    while (!*received->test()) std::this_thread::yield();  // which looks, but does not wait
  });
  ASSERT_EQ(traces.size(), 2U);
  for (const cli::RankTrace& trace : traces)
    for (const cli::TracedCall& call : trace.calls)
      EXPECT_EQ(call.awaited_ns == 0, call.kind == "recv") << call.details;
}

TEST(Trace, has_waits_for_operations_of_two_communicators) {
  const auto traces = traces_of(2, [](Communicator& comm) {
    const Rank other{1 - index(comm.rank())};
    auto part = comm.split(0, 0);
    ASSERT_OK(part.status());
    std::vector<float> x(1, 1.0F), y(1);
    // Nothing tells rank 1 that the other waits: in one of 50 rounds its messages come after that.
    for (int round = 0; round < 50; ++round) {
      if (comm.rank() == Rank{1}) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ASSERT_OK(wait(comm.send(view(x), other)));
        ASSERT_OK(wait(part->send(view(x), other)));
        continue;
      }
      std::vector<Work> works;
      works.push_back(*comm.recv(view(x), other));
      works.push_back(*part->recv(view(y), other));
      ASSERT_OK(wait_all(works));
    }
  });
  ASSERT_EQ(traces.size(), 4U);
  int awaited = 0;
  for (const cli::RankTrace& trace : traces)
    for (const cli::TracedCall& call : trace.calls)
      awaited += call.kind == "recv" && call.awaited_ns != 0 ? 1 : 0;
  EXPECT_GE(awaited, 2);
}

TEST(Trace, that_is_longer_than_what_is_remembered_says_so) {
  const Environment environment(Variables{{"ANYCCL_RECORD", "4"}});
  const auto traces = traces_of(1, [](Communicator& comm) {
    for (int i = 0; i < 10; ++i) ASSERT_OK(wait(comm.barrier()));
  });
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].calls.size(), 4U);
  EXPECT_EQ(traces[0].left_out, 6U);
}

TEST(Trace, is_written_when_a_dump_is_asked_for) {
  const TemporaryFolder folder;
  const Environment environment(Variables{{"ANYCCL_TRACE", folder.path()}});
  run_ranks(1, [&](Communicator& comm) {
    ASSERT_OK(wait(comm.barrier()));
    ASSERT_OK(comm.dump(folder.path() + "/dump"));
    const auto traces = cli::read_traces({folder.path()});
    ASSERT_OK(traces.status());
    EXPECT_EQ((*traces)[0].calls.size(), 1U);
  });
}

}  // namespace
}  // namespace anyccl::test
