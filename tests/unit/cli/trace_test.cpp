// What `anyccl trace` makes of traces: one clock, who met whom, arrows, and where the time went.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "trace/clocks.hpp"
#include "trace/matches.hpp"
#include "trace/merge.hpp"
#include "trace/summary.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMs = 1'000'000;

/// The trace of a rank that is made step by step, with times in milliseconds on its host's clock.
struct Rank : RankTrace {
  explicit Rank(int me, int ranks = 2) {
    communicator = "c";
    name = "train";
    host = "n0";
    pid = 100 + me;
    rank = me;
    size = ranks;
    time_ns = 1'000'000 * kMs;
  }
  Rank&& on(const std::string& other_host, std::int64_t ahead_ms = 0) && {
    host = other_host;
    ahead = ahead_ms;
    return std::move(*this);
  }
  Rank&& reduces(std::int64_t from, std::int64_t to) && {
    add("all_reduce", 1024, from, from, to).sequence = ++sequence;
    return std::move(*this);
  }
  /// Issued, and waited for from `awaited` on, if it is not over.
  Rank&& issues(std::int64_t from, std::int64_t awaited, std::int64_t to) && {
    add("all_reduce", 1024, from, awaited, to).sequence = ++sequence;
    return std::move(*this);
  }
  Rank&& sends(int peer, std::int64_t from, std::int64_t to) && {
    add("send", 8, from, from, to).root = peer;
    return std::move(*this);
  }
  Rank&& receives(int peer, std::int64_t from, std::int64_t to) && {
    add("recv", 8, from, from, to).root = peer;
    return std::move(*this);
  }

 private:
  TracedCall& add(const char* kind, std::uint64_t bytes, std::int64_t from, std::int64_t awaited,
                  std::int64_t to) {
    TracedCall call;
    call.kind = kind;
    call.bytes = bytes;
    call.issued_ns = call.started_ns = (ahead + from) * kMs;
    call.awaited_ns = (ahead + awaited) * kMs;
    call.ended_ns = (ahead + to) * kMs;
    call.track = call.kind == "all_reduce" ? 1 : 2;
    call.details = R"({"kind": "x", "issued_ns": 1})";
    calls.push_back(call);
    return calls.back();
  }
  std::uint64_t sequence = 0;
  std::int64_t ahead = 0;
};

/// Ranks 0 and 1 do 10 operations; rank 1 comes 4 ms late to each, and computes for 5 ms meanwhile.
std::vector<RankTrace> late_rank() {
  Rank first(0), second(1);
  for (std::int64_t t = 10; t < 110; t += 10) {
    static_cast<void>(std::move(first).reduces(t, t + 5));
    static_cast<void>(std::move(second).reduces(t + 4, t + 5));
  }
  return {first, second};
}

/// The error of reading a trace of rank 0 of 2, which has two collectives; empty: there is none.
std::string error_of_trace(int sequence, std::int64_t track) {
  Json json{{"otherData",
             {{"anyccl_trace", 1},
              {"communicator", "c"},
              {"name", "train"},
              {"host", "n0"},
              {"pid", 100},
              {"rank", 0},
              {"size", 2},
              {"time_ns", 100},
              {"real_offset_ns", 0},
              {"left_out", 0}}}};
  const Json call{{"kind", "barrier"}, {"bytes", 0}, {"issued_ns", 1}, {"sequence", 1}};
  json["traceEvents"] = {{{"ph", "X"}, {"tid", 1}, {"args", call}},
                         {{"ph", "X"}, {"tid", track}, {"args", call}}};
  json["traceEvents"][1]["args"]["sequence"] = sequence;
  return std::string(parse_trace(json.dump()).status().message());
}

TEST(ParseTrace, refuses_an_operation_that_is_there_twice) {
  EXPECT_EQ(error_of_trace(2, 1), "");
  EXPECT_EQ(error_of_trace(1, 1), "it is no trace: it has operation 1 twice");
}

TEST(ParseTrace, refuses_tracks_that_so_few_calls_cannot_be_on) {
  EXPECT_EQ(error_of_trace(2, 2), "");
  for (const int track : {-1, 0, 3, 2147483647})
    EXPECT_EQ(error_of_trace(2, track),
              "it is no trace: its 2 calls have no track " + std::to_string(track));
}

TEST(TraceClocks, of_one_host_are_one) {
  std::vector<RankTrace> traces = late_rank();
  const auto clocks = align(traces);
  ASSERT_EQ(clocks.size(), 1U);
  EXPECT_EQ(traces[1].calls[0].started_ns, 14 * kMs);
}

TEST(TraceClocks, are_bounded_by_what_needs_all_ranks) {
  // Clock of n1: 500 ms ahead. Operations take 1 ms on the rank that comes last, so the bounds are
  // 2 ms apart, with the truth in their middle when either comes last once.
  std::vector<RankTrace> traces{Rank(0).reduces(10, 15).reduces(24, 25),
                                Rank(1).on("n1", 500).reduces(14, 15).reduces(20, 25)};
  const auto clocks = align(traces);
  ASSERT_EQ(clocks.size(), 2U);
  EXPECT_EQ(clocks[1].host, "n1");
  EXPECT_EQ(clocks[1].ahead_ns, 500 * kMs);
  EXPECT_EQ(clocks[1].error_ns, 1 * kMs);
  EXPECT_EQ(traces[1].calls[0].started_ns, 14 * kMs);
}

TEST(TraceClocks, are_bounded_by_messages_both_ways_and_through_other_hosts) {
  std::vector<RankTrace> traces{
      Rank(0, 3).sends(1, 10, 10).receives(1, 11, 14),
      Rank(1, 3).on("n1", -70).receives(0, 5, 12).sends(0, 12, 12).sends(2, 20, 20).receives(2, 21,
                                                                                             24),
      Rank(2, 3).on("n2", 9000).receives(1, 15, 22).sends(1, 22, 22)};
  const auto clocks = align(traces);
  ASSERT_EQ(clocks.size(), 3U);
  EXPECT_EQ(clocks[1].ahead_ns, -70 * kMs);
  EXPECT_EQ(clocks[2].ahead_ns, 9000 * kMs);
  EXPECT_EQ(clocks[2].error_ns, 4 * kMs);
}

TEST(TraceClocks, that_nothing_connects_are_taken_by_the_real_time) {
  std::vector<RankTrace> traces{Rank(0).sends(1, 10, 10), Rank(1).on("n1").receives(0, 5, 12)};
  traces[1].real_offset_ns = -30 * kMs;
  const auto clocks = align(traces);
  ASSERT_EQ(clocks.size(), 2U);
  EXPECT_LT(clocks[1].error_ns, 0);
  EXPECT_EQ(clocks[1].ahead_ns, 30 * kMs);
}

TEST(TraceMatches, pair_messages_by_their_order) {
  const auto deliveries = deliveries_of(
      {Rank(0).sends(1, 1, 1).sends(1, 2, 2), Rank(1).receives(0, 3, 4).receives(0, 4, 5)});
  ASSERT_EQ(deliveries.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(deliveries[i].send.call, i);
    EXPECT_EQ(deliveries[i].recv.call, i);
  }
}

TEST(TraceMatches, do_not_guess_where_a_rank_receives_from_any_or_has_forgotten_calls) {
  EXPECT_TRUE(deliveries_of({Rank(0).sends(1, 1, 1), Rank(1).receives(0, 3, 4).receives(-1, 4, 5)})
                  .empty());
  std::vector<RankTrace> traces{Rank(0).sends(1, 1, 1), Rank(1).receives(0, 3, 4)};
  traces[0].left_out = 1;
  EXPECT_TRUE(deliveries_of(traces).empty());
}

TEST(TraceMatches, of_a_collective_that_a_rank_has_not_begun_are_not_complete) {
  const auto common_calls =
      common_calls_of({Rank(0, 3).reduces(1, 2).reduces(3, 4),
                       Rank(1, 3).reduces(1, 2).reduces(3, 4), Rank(2, 3).reduces(1, 2)});
  ASSERT_EQ(common_calls.size(), 2U);
  EXPECT_TRUE(common_calls[0].is_complete);
  EXPECT_FALSE(common_calls[1].is_complete);
}

std::vector<Json> events_of(const std::string& text, const std::string& phase) {
  const Json timeline = Json::parse(text);
  std::vector<Json> events;
  for (const Json& event : timeline.at("traceEvents"))
    if (event.at("ph") == phase) events.push_back(event);
  return events;
}

TEST(TraceMerge, has_every_call_once_and_says_who_is_waited_for) {
  const std::string text = merged_timeline(late_rank(), {{"n0", 0, 0}});
  const auto spans = events_of(text, "X");
  ASSERT_EQ(spans.size(), 20U);
  EXPECT_EQ(spans[0].at("ts"), 0.0);
  EXPECT_EQ(spans[0].at("dur"), 5000.0);
  EXPECT_EQ(spans[0].at("args").at("waits_for"), 1);
  EXPECT_EQ(spans[0].at("args").at("came_earlier_by_us"), 4000.0);
  EXPECT_FALSE(spans[0].at("args").contains("issued_ns"));
  EXPECT_NE(spans[0].at("pid"), spans[10].at("pid"));
  EXPECT_FALSE(spans[10].at("args").contains("waits_for"));
}

TEST(TraceMerge, begins_where_traces_without_calls_were_written) {
  const Rank alone(0, 1);
  const Json merged = Json::parse(merged_timeline({alone}, {{"n0", 0, 0}}));
  EXPECT_EQ(merged.at("otherData").at("start_real_ns"), alone.time_ns + alone.real_offset_ns);
}

TEST(TraceMerge, draws_arrows_within_the_spans_that_they_connect) {
  const std::string text = merged_timeline(
      {Rank(0).sends(1, 10, 11).reduces(20, 25), Rank(1).receives(0, 5, 12).reduces(24, 25)}, {});
  const auto from = events_of(text, "s"), to = events_of(text, "f");
  ASSERT_EQ(from.size(), 2U);
  ASSERT_EQ(to.size(), 2U);
  EXPECT_EQ(from[0].at("name"), "waits for");  // rank 1 came last to the collective
  EXPECT_EQ(from[0].at("pid"), 2);
  EXPECT_EQ(from[0].at("ts"), 19000.0);  // since the first call, at 5 ms
  EXPECT_EQ(to[0].at("pid"), 1);
  EXPECT_EQ(from[1].at("name"), "message");
  EXPECT_EQ(from[1].at("ts"), 5000.0);
  EXPECT_EQ(to[1].at("ts"), 5000.0);
  EXPECT_EQ(to[1].at("id"), from[1].at("id"));
}

TEST(TraceMerge, keeps_ranks_of_one_process_on_tracks_of_their_own) {
  std::vector<RankTrace> traces = late_rank();
  traces[1].pid = traces[0].pid;
  const auto spans = events_of(merged_timeline(traces, {}), "X");
  EXPECT_EQ(spans[0].at("pid"), spans[10].at("pid"));
  EXPECT_NE(spans[0].at("tid"), spans[10].at("tid"));
}

TEST(TraceMerge, has_a_track_for_each_stream) {
  Rank rank(0, 1);
  for (const int stream : {0, 1, 2}) {
    static_cast<void>(std::move(rank).reduces(10 * stream, 10 * stream + 5));
    rank.calls.back().stream = stream;
    rank.calls.back().track = 1 + stream;
  }
  std::set<std::string> titles;
  const Json timeline = Json::parse(merged_timeline({rank}, {}));
  for (const Json& event : timeline.at("traceEvents"))
    if (event["name"] == "thread_name") titles.insert(event["args"]["name"]);
  EXPECT_EQ(titles, (std::set<std::string>{"train, rank 0", "train, rank 0, stream 1",
                                           "train, rank 0, stream 2"}));
}

TEST(TraceSummary, is_the_same_for_programs) {
  const std::vector<RankTrace> traces = late_rank();
  const TraceSummary summary = summarize(traces);
  const Json json = Json::parse(json_of(summary, {{"n0", 0, 0}}));
  EXPECT_EQ(json["exposed_share"], summary.exposed_share());
  EXPECT_EQ(json["ranks"].size(), summary.ranks.size());
  EXPECT_EQ(json["ranks"][0]["exposed_ns"], summary.ranks[0].exposed);
  EXPECT_EQ(json["operations"][0]["calls"], 20);
  EXPECT_EQ(json["late"][0]["rank"], 1);
  EXPECT_EQ(json["clocks"][0]["host"], "n0");
}

TEST(TraceSummary, tells_waiting_for_late_ranks_from_the_rest) {
  const TraceSummary summary = summarize(late_rank());
  ASSERT_EQ(summary.ranks.size(), 2U);
  EXPECT_EQ(summary.ranks[0].total, 95 * kMs);
  EXPECT_EQ(summary.ranks[0].communicating, 50 * kMs);
  EXPECT_EQ(summary.ranks[0].exposed, 50 * kMs);
  EXPECT_EQ(summary.ranks[0].for_late, 40 * kMs);
  EXPECT_EQ(summary.ranks[1].exposed, 10 * kMs);
  EXPECT_EQ(summary.ranks[1].for_late, 0);
  ASSERT_EQ(summary.operations.size(), 1U);
  EXPECT_EQ(summary.operations[0].calls, 20U);
  EXPECT_EQ(summary.operations[0].total, 60 * kMs);
  EXPECT_EQ(summary.operations[0].for_late, 40 * kMs);
}

TEST(TraceSummary, names_the_rank_that_comes_last_and_by_how_much) {
  const TraceSummary summary = summarize(late_rank());
  ASSERT_EQ(summary.late.size(), 1U);
  EXPECT_EQ(summary.late[0].rank, 1);
  EXPECT_EQ(summary.late[0].last, 10U);
  EXPECT_EQ(summary.late[0].of, 10U);
  EXPECT_EQ(summary.late[0].median, 4 * kMs);
}

TEST(TraceSummary, counts_as_hidden_what_no_thread_waits_for) {
  const TraceSummary summary = summarize({Rank(0).issues(1, 9, 11).issues(11, 20, 13)});
  EXPECT_EQ(summary.ranks[0].communicating, 12 * kMs);
  EXPECT_EQ(summary.ranks[0].exposed, 2 * kMs);
}

TEST(TraceSummary, counts_a_wait_for_an_operation_whose_turn_has_not_come) {
  // The second one is waited for from the beginning on, and runs when the first is over.
  std::vector<RankTrace> traces{Rank(0).issues(1, 50, 11).issues(11, 3, 12)};
  EXPECT_EQ(summarize(traces).ranks[0].exposed, 9 * kMs);
}

TEST(TraceSummary, counts_operations_at_the_same_time_once) {
  const TraceSummary summary = summarize({Rank(0).sends(1, 1, 11).sends(1, 6, 13)});
  EXPECT_EQ(summary.ranks[0].communicating, 12 * kMs);
}

TEST(TraceSummary, gives_remedies_above_thirty_percent) {
  const auto says = [](std::vector<RankTrace> traces, const char* part) {
    return text_of(summarize(traces), {}).find(part) != std::string::npos;
  };
  const auto much = late_rank();
  EXPECT_TRUE(says(much, "32.3 % of the time, which is above 30 %"));
  for (const char* remedy : {"1. Fewer bytes", "2. Overlap", "3. A faster algorithm",
                             "67 % of it was spent waiting for ranks that came late"})
    EXPECT_TRUE(says(much, remedy)) << remedy;
  const std::vector<RankTrace> little{Rank(0).reduces(1, 2).reduces(100, 101)};
  EXPECT_TRUE(says(little, "2.0 % of the time, which is not above 30 %"));
  EXPECT_FALSE(says(little, "1. Fewer bytes"));
}

}  // namespace
}  // namespace anyccl::cli
