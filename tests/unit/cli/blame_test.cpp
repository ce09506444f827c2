// The verdicts on a job, from dumps that its ranks have written.

#include "blame/blame.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

namespace anyccl::cli {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000, kStart = 1'700'000'000'000 * kMillisecond;

/// The dump of a rank that is made step by step.
struct Rank : RankDump {
  Rank(std::string id, int me, int ranks) {
    communicator = std::move(id);
    process = "host n, pid " + std::to_string(100 + me);
    rank = me;
    size = ranks;
    time_ns = kStart;
  }
  Rank&& runs_in(int pid) && {
    process = "host n, pid " + std::to_string(pid);
    return std::move(*this);
  }
  Rank&& finishes(const std::string& what, std::int64_t at = 0) && {
    add(what, at).ended_ns = kStart + at * kMillisecond + 1;
    return std::move(*this);
  }
  Rank&& waits_in(const std::string& what, std::vector<int> ranks) && {
    const DumpedCall& call = add(what, 1000);
    waits.push_back({call.number, call.sequence, what, std::move(ranks)});
    return std::move(*this);
  }
  Rank&& receives(int from) && {
    calls.push_back({calls.size() + 1, 0, "recv", "running", "recv of 1 f32", kStart, 0});
    waits.push_back({calls.size(), 0, "recv", {from}});
    return std::move(*this);
  }
  Rank&& sees(int other, std::string state, bool stopped, std::uint64_t entered) && {
    peers.push_back(
        {other, "host n, pid " + std::to_string(100 + other), std::move(state), stopped, entered});
    return std::move(*this);
  }
  Rank&& fails(std::string why) && {
    failure = std::move(why);
    return std::move(*this);
  }
  Rank&& aborts() && {
    aborted = true;
    return std::move(*this).fails("aborted");
  }
  Rank&& runs_on(const std::string& host) && {
    process = "host " + host + ", pid 100";  // hosts may have processes of one number
    return std::move(*this);
  }

 private:
  DumpedCall& add(const std::string& what, std::int64_t at) {
    calls.push_back(
        {calls.size() + 1, ++sequence, what, "running", what, kStart + at * kMillisecond, 0});
    return calls.back();
  }
};

Blame blamed(std::vector<RankDump> dumps) {
  return find_blame(dumps);
}

void expect(const Blame& blame, const char* kind, const std::vector<int>& ranks) {
  EXPECT_EQ(blame.kind, kind) << blame.text;
  EXPECT_EQ(blame.ranks, ranks) << blame.text;
}

void expect_in(const Blame& blame, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(blame.text.find(part), std::string::npos) << "no '" << part << "' in: " << blame.text;
}

TEST(Blame, is_on_a_rank_that_does_not_come_and_not_on_those_that_pass_the_delay_on) {
  const Blame blame = blamed({Rank("c", 0, 3).finishes("barrier").waits_in("all_reduce", {1}),
                              Rank("c", 1, 3).finishes("barrier").waits_in("all_reduce", {2}),
                              Rank("c", 2, 3).finishes("barrier")});
  expect(blame, "absent", {2});
  expect_in(blame,
            {"Rank 2 of communicator c", "operation 1, barrier, ended at 2023-11-14 22:13:20",
             "operation 2, all_reduce, since 2023-11-14 22:13:21", "2 processes"});
}

TEST(Blame, is_on_the_rank_that_calls_something_else) {
  const Blame blame = blamed({Rank("c", 0, 3).waits_in("all_reduce of 2 f32, sum", {1}),
                              Rank("c", 1, 3).waits_in("all_reduce of 3 f32, sum", {2}),
                              Rank("c", 2, 3).waits_in("all_reduce of 2 f32, sum", {0})});
  expect(blame, "mismatch", {1});
  expect_in(blame, {"rank 1 called all_reduce of 3 f32", "ranks 0, 2 called all_reduce of 2 f32"});
}

TEST(Blame, says_which_call_a_rank_seems_to_have_left_out) {
  const Blame blame = blamed({Rank("c", 0, 3).finishes("barrier").waits_in("all_reduce", {1}),
                              Rank("c", 1, 3).finishes("barrier").waits_in("all_reduce", {2}),
                              Rank("c", 2, 3).waits_in("all_reduce", {0})});
  expect(blame, "mismatch", {2});
  expect_in(blame, {"rank 2 called all_reduce, and seems to have left out barrier"});
}

TEST(Blame, of_another_order_of_two_communicators_names_both_calls) {
  const Blame blame = blamed({Rank("dp", 0, 2).runs_in(1).waits_in("all_reduce of 1 f32", {1}),
                              Rank("dp", 1, 2).runs_in(2), Rank("tp", 0, 2).runs_in(1),
                              Rank("tp", 1, 2).runs_in(2).waits_in("broadcast of 1 f32", {0})});
  EXPECT_EQ(blame.kind, "cycle") << blame.text;
  expect_in(blame, {"rank 0 is in operation 1 of communicator dp, all_reduce of 1 f32",
                    "rank 1 is in operation 1 of communicator tp, broadcast of 1 f32"});
}

TEST(Blame, of_a_cycle_is_on_the_first_communicator_of_it_by_name) {
  const Blame blame =
      blamed({Rank("a", 0, 2).runs_in(1).waits_in("barrier", {1}), Rank("a", 1, 2).runs_in(2),
              Rank("b", 0, 2).runs_in(3).waits_in("barrier", {1}), Rank("b", 1, 2).runs_in(2),
              Rank("z", 0, 2).runs_in(3), Rank("z", 1, 2).runs_in(2).waits_in("barrier", {0})});
  expect(blame, "cycle", {0});
  EXPECT_EQ(blame.communicator, "communicator b");
}

TEST(Blame, follows_a_wait_into_another_communicator) {
  const Blame blame =
      blamed({Rank("dp", 0, 2).runs_in(1).waits_in("barrier", {1}), Rank("dp", 1, 2).runs_in(2),
              Rank("tp", 0, 2).runs_in(2).waits_in("barrier", {1}), Rank("tp", 1, 2).runs_in(3)});
  expect(blame, "absent", {1});
  EXPECT_EQ(blame.communicator, "communicator tp");
}

TEST(Blame, is_on_a_dead_rank_and_not_on_those_that_leave_after_their_failure) {
  const Blame blame = blamed(
      {Rank("c", 0, 3).waits_in("barrier", {1}).sees(1, "dead", false, 0).fails("rank 1 died"),
       Rank("c", 2, 3)
           .waits_in("barrier", {0})
           .sees(0, "dead", false, 1)
           .sees(1, "present", false, 0)
           .fails("rank 1 died")});
  expect(blame, "dead", {1});
}

TEST(Blame, is_on_a_stopped_rank_also_when_it_had_come_to_the_call) {
  expect(blamed({Rank("c", 0, 2).waits_in("barrier", {1}).sees(1, "present", true, 1)}), "stopped",
         {1});
}

TEST(Blame, is_on_a_rank_without_a_dump) {
  const Blame blame =
      blamed({Rank("c", 0, 3).waits_in("barrier", {2}),
              Rank("c", 1, 3).waits_in("barrier", {2}).sees(2, "present", false, 0)});
  expect(blame, "no_dump", {2});
}

TEST(Blame, is_on_a_rank_that_does_not_send_what_is_received) {
  const Blame blame = blamed(
      {Rank("c", 0, 2).finishes("barrier").receives(1), Rank("c", 1, 2).finishes("barrier")});
  expect(blame, "absent", {1});
  expect_in(blame, {"rank 0 of communicator c waits for it in recv of 1 f32"});
}

TEST(Blame, of_receives_from_each_other_is_a_cycle) {
  expect(blamed({Rank("c", 0, 2).receives(1), Rank("c", 1, 2).receives(0)}), "cycle", {0, 1});
}

TEST(Blame, is_not_given_where_all_are_in_one_call) {
  EXPECT_EQ(
      blamed({Rank("c", 0, 2).waits_in("barrier", {1}), Rank("c", 1, 2).waits_in("barrier", {0})})
          .kind,
      "unclear");
}

TEST(Blame, is_on_the_rank_that_lags_and_not_on_one_that_leads) {
  std::vector<RankDump> dumps;
  for (int r = 0; r < 3; ++r) {
    Rank dump("c", r, 3);
    for (int i = 0; i < 20; ++i)
      static_cast<void>(std::move(dump).finishes("barrier", 20 * i + (r == 1 ? 7 : r)));
    dumps.push_back(std::move(dump));
  }
  const Blame blame = find_blame(dumps);
  expect(blame, "slow", {1});
  expect_in(blame, {"to 20 of 20 operations, 5 ms after"});
}

TEST(Blame, is_on_the_rank_that_lags_also_where_others_come_at_one_time) {
  std::vector<RankDump> dumps;
  for (int r = 0; r < 3; ++r) {
    Rank dump("c", r, 3);
    for (int i = 0; i < 20; ++i)
      static_cast<void>(std::move(dump).finishes("barrier", 20 * i + (r == 1 ? 7 : 0)));
    dumps.push_back(std::move(dump));
  }
  expect(find_blame(dumps), "slow", {1});
}

TEST(Blame, is_not_on_a_rank_that_is_alone) {
  Rank dump("c", 0, 1);
  for (int i = 0; i < 20; ++i) static_cast<void>(std::move(dump).finishes("barrier", 20 * i));
  expect(blamed({dump}), "nobody", {});
}

TEST(Blame, is_on_nobody_when_everything_has_finished) {
  expect(blamed({Rank("c", 0, 2).finishes("barrier"), Rank("c", 1, 2).finishes("barrier")}),
         "nobody", {});
}

TEST(Blame, of_a_failure_without_waits_gives_its_reason) {
  const Blame blame =
      blamed({Rank("c", 0, 2).finishes("barrier").fails("aborted"), Rank("c", 1, 2)});
  expect(blame, "failure", {0});
  expect_in(blame, {"aborted"});
}

TEST(ParseDump, refuses_what_is_no_dump_and_ranks_that_there_are_not) {
  const std::string head = R"({"anyccl_dump": 1, "real_offset_ns": 5, "host": "n", "pid": 1,
    "communicator": "c", "name": "", "reason": "call", "size": 2, "sequence": 1, "time_ns": 1,)";
  const std::string entry = R"({"number": 1, "kind": "recv", "state": "running", "count": 2,
    "type": "f32", "peer": 1, "tag": 7, "issued_ns": 10})";
  const auto dump =
      parse_dump(head + R"("rank": 0, "peers": [], "waits": [], "entries": [)" + entry + "]}");
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  EXPECT_EQ(dump->calls.at(0).what, "recv of 2 f32 from rank 1, tag 7");
  EXPECT_EQ(dump->calls.at(0).issued_ns, 15);
  const std::string whole = R"("rank": 0, "peers": [], "waits": [], "entries": [], "threads": [)" +
                            head + R"("rank": 1, "peers": [], "waits": [], "entries": []}]})";
  const auto team = parse_dumps(head + whole);
  ASSERT_TRUE(team.ok()) << team.status().message();
  EXPECT_EQ(team->at(1).rank, 1);
  for (const std::string& bad :
       {std::string("{"), std::string("[]"), std::string(R"({"anyccl_dump": 2})"), head + "}",
        head + R"("rank": 2, "peers": [], "waits": [], "entries": []})"})
    EXPECT_EQ(parse_dump(bad).status().code(), Code::invalid_argument) << bad;
}

TEST(ParseDump, refuses_fractions_and_times_that_no_clock_has) {
  const std::string good = R"({"anyccl_dump": 1, "real_offset_ns": 5, "host": "n", "pid": 1,
    "communicator": "c", "name": "", "reason": "call", "size": 2, "sequence": 1, "time_ns": 1,
    "rank": 0,
    "peers": [{"rank": 1, "name": "", "state": "", "stopped": false, "entered": 3}],
    "waits": [{"number": 6, "sequence": 4, "what": "", "ranks": [ 1]}],
    "entries": [{"number": 7, "sequence": 9, "kind": "barrier", "state": "", "issued_ns": 10}]})";
  EXPECT_TRUE(parse_dump(good).ok()) << parse_dump(good).status().message();
  for (const auto& [part, instead] :
       {std::pair<std::string, std::string>{R"("real_offset_ns": 5)", R"("real_offset_ns": 5.5)"},
        {R"([{"rank": 1)", R"([{"rank": 0.5)"},
        {R"("entered": 3)", R"("entered": -3)"},
        {R"("number": 6)", R"("number": 6.5)"},
        {R"("sequence": 4)", R"("sequence": 4.5)"},
        {"[ 1]", "[1.5]"},
        {"[ 1]", "1"},
        {R"("number": 7)", R"("number": 7.5)"},
        {R"("sequence": 9)", R"("sequence": 9.5)"},
        {R"("time_ns": 1)", R"("time_ns": 9223372036854775807)"},
        {R"("issued_ns": 10)", R"("issued_ns": 9223372036854775807)"},
        {R"("real_offset_ns": 5)", R"("real_offset_ns": -9223372036854775808)"}}) {
    std::string bad = good;
    bad.replace(bad.find(part), part.size(), instead);
    EXPECT_EQ(parse_dump(bad).status().code(), Code::invalid_argument) << bad;
  }
}

TEST(Blame, is_on_a_rank_that_aborted_while_others_waited_for_it) {
  const Blame blame = blamed({Rank("c", 0, 3).waits_in("all_reduce", {2}).fails("aborted"),
                              Rank("c", 1, 3).waits_in("all_reduce", {2}).fails("aborted"),
                              Rank("c", 2, 3).aborts()});
  expect(blame, "aborted", {2});
  expect_in(blame, {"Rank 2 of communicator c", "has aborted the communicator"});
}

TEST(Blame, is_not_on_a_rank_that_aborts_because_another_one_does_not_come) {
  expect(blamed({Rank("c", 0, 3).waits_in("all_reduce", {1}).aborts(),
                 Rank("c", 1, 3).waits_in("all_reduce", {2}).fails("aborted"), Rank("c", 2, 3)}),
         "absent", {2});
}

TEST(Blame, is_not_on_the_abort_of_a_rank_that_others_had_given_up_before) {
  expect(blamed({Rank("c", 0, 2).waits_in("all_reduce", {1}).fails("timeout"),
                 Rank("c", 1, 2).aborts()}),
         "absent", {1});
}

TEST(Blame, tells_processes_of_several_hosts_apart) {
  const Blame blame = blamed(
      {Rank("dp", 0, 2).runs_on("a").waits_in("barrier", {1}), Rank("dp", 1, 2).runs_on("b"),
       Rank("tp", 0, 2).runs_on("b").waits_in("barrier", {1}), Rank("tp", 1, 2).runs_on("c")});
  expect(blame, "absent", {1});
  EXPECT_EQ(blame.communicator, "communicator tp");
  expect_in(blame, {"(host c, pid 100)", "2 processes"});
}

TEST(Blame, is_on_a_rank_whose_host_does_not_answer) {
  const Blame blame =
      blamed({Rank("c", 0, 3).waits_in("all_reduce", {2}).sees(2, "silent", false, 0),
              Rank("c", 1, 3).waits_in("all_reduce", {2}).sees(2, "present", false, 0)});
  expect(blame, "silent", {2});
  expect_in(blame, {"Rank 2 of communicator c", "does not answer", "2 processes"});
}

TEST(Blame, believes_a_rank_that_saw_a_death_more_than_one_that_hears_nothing) {
  expect(blamed({Rank("c", 0, 3).waits_in("all_reduce", {2}).sees(2, "dead", false, 0),
                 Rank("c", 1, 3).waits_in("all_reduce", {2}).sees(2, "silent", false, 0)}),
         "dead", {2});
}

TEST(Blame, is_found_soon_where_there_are_many_ranks) {
  constexpr int kRanks = 600;
  std::vector<RankDump> dumps;
  for (int r = 0; r < kRanks - 1; ++r) {
    Rank dump("c", r, kRanks);
    for (int other = 0; other < kRanks; ++other)
      if (other != r)
        dump = std::move(dump).sees(other, "present", false, other < kRanks - 1 ? 1 : 0);
    dumps.push_back(std::move(dump).waits_in("all_reduce", {(r + 1) % kRanks}));
  }
  const auto begin = std::chrono::steady_clock::now();
  expect(blamed(std::move(dumps)), "no_dump", {kRanks - 1});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace anyccl::cli
