// A rank that does not come, whatever keeps it, is named by all others within their time limit, and
// in the log before.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "support/effort.hpp"
#include "support/ranks.hpp"
#include "support/shared_counts.hpp"
#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Variables = std::vector<std::pair<std::string, std::string>>;
constexpr int kRanks = 3;

enum class Fault {
  never_calls,
  is_stopped,
  is_in_another_call,
  is_in_a_receive,
  was_killed,
  is_late
};
constexpr const char* kFaults[] = {"never calls",     "is stopped", "is in another call",
                                   "is in a receive", "was killed", "is late"};
enum class Action {
  all_reduce,
  large_all_reduce,
  barrier,
  all_gather,
  all_to_all,
  broadcast,
  scan,
  issued,
  gather,
  reduce,
  receive
};
constexpr const char* kActions[] = {"all_reduce", "large all_reduce", "barrier", "all_gather",
                                    "all_to_all", "broadcast",        "scan",    "issued",
                                    "gather",     "reduce",           "receive"};

struct Case {
  Fault fault;
  Action action;
  std::chrono::milliseconds limit;
  Rank faulty;
  const char* transport;
};

Status act(Communicator& comm, const Case& one) {
  std::vector<float> x(one.action == Action::large_all_reduce ? 300000 : 2, 1.0F);
  std::vector<float> all(x.size() * static_cast<std::size_t>(comm.size())), others = all;
  const Rank next{(index(one.faulty) + 1) % kRanks};
  switch (one.action) {
    case Action::barrier:
      return wait(comm.barrier());
    case Action::all_gather:
      return wait(comm.all_gather(view(x), view(all)));
    case Action::all_to_all:
      return wait(comm.all_to_all(view(others), view(all)));
    case Action::scan:
      return wait(comm.scan(view(x), view(x), ReduceOp::sum));
    case Action::gather:
      return wait(comm.gather(view(x), view(all), next));
    case Action::reduce:
      return wait(comm.reduce(view(x), view(x), ReduceOp::sum, next));
    case Action::broadcast:
      return wait(comm.broadcast(view(x), view(x), one.faulty));
    case Action::issued:
      return wait(comm.issue(call_of(anycclCollAllReduce, x)));
    case Action::receive:
      return comm.rank() == one.faulty ? wait(comm.send(view(x), next))
             : comm.rank() == next     ? wait(comm.recv(view(x), one.faulty))
                                       : Status();
    default:
      return wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
  }
}

/// By how many microseconds calls ended after their limits, of all processes.
struct Latenesses {
  void take(Clock::duration late) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(late).count();
    us_[static_cast<std::size_t>(taken_++) % us_.size()] = static_cast<int>(us);
  }
  void report() {
    const auto end = us_.begin() + taken_;
    std::sort(us_.begin(), end);
    const auto ms_at = [&](double share) {
      return 1e-3 * us_[static_cast<std::size_t>(share * (taken_ - 1))];
    };
    std::printf("%d calls ended %.1f ms after their limit (median), %.1f (99 %%), %.1f (all)\n",
                taken_.load(), ms_at(0.5), ms_at(0.99), ms_at(1));
  }

 private:
  std::atomic<int> taken_{0};
  std::array<int, 4096> us_{};
};

/// The end of the first communicator must not be the error of the others. The ranks are processes:
/// nothing wakes one when the count in their shared memory changes.
void meet_outside(const Case& one, const SharedCounts& shared) {
  const int all = one.fault == Fault::is_late ? kRanks : kRanks - 1;
  while (shared->over < all) std::this_thread::sleep_for(1ms);
}

/// The part of the faulty rank. It stays until the others are through, as its end would tell them.
void misbehave(Communicator& comm, const Case& one, const SharedCounts& shared) {
  std::vector<float> x(7, 1.0F);
  switch (one.fault) {
    case Fault::never_calls:
      break;
    case Fault::is_stopped:
      shared->stopped = ::getpid();
      ::raise(SIGSTOP);
      shared->resumed = true;
      break;
    case Fault::is_in_another_call:
      EXPECT_FALSE(wait(comm.reduce(view(x), view(x), ReduceOp::max, one.faulty)).ok());
      break;
    case Fault::is_in_a_receive:
      EXPECT_FALSE(wait(comm.recv(view(x), Rank{(index(one.faulty) + 2) % kRanks})).ok());
      break;
    case Fault::was_killed:
      ::raise(SIGKILL);
      break;
    case Fault::is_late:
      std::this_thread::sleep_for(100ms);  // to be late is the fault
      EXPECT_OK(act(comm, one));
      ++shared->over;
  }
  meet_outside(one, shared);
}

void expect_named(const Status& status, const Case& one) {
  EXPECT_FALSE(status.ok());
  const std::string rank = "rank " + std::to_string(index(one.faulty));
  EXPECT_NE(status.message().find(rank), std::string::npos) << status.message();
}

bool needs_the_faulty_rank(const Communicator& comm, const Case& one) {
  if (one.action == Action::scan) return comm.rank() > one.faulty;
  return one.action < Action::gather || index(comm.rank()) == (index(one.faulty) + 1) % kRanks;
}

void survive(Communicator& comm, const Case& one, const SharedCounts& shared,
             Latenesses* latenesses) {
  const auto since = Clock::now();
  const Status status = act(comm, one);
  const auto late = Clock::now() - since - one.limit;
  EXPECT_LT(late, 2s) << "the bound is for busy machines";
  if (latenesses != nullptr && status.code() == Code::timeout) latenesses->take(late);
  if (one.fault == Fault::is_late)
    EXPECT_OK(status);
  else if (needs_the_faulty_rank(comm, one))
    expect_named(status, one);
  if (++shared->over == kRanks - 1 && one.fault == Fault::is_stopped) {
    while (shared->stopped == 0) std::this_thread::yield();
    // A signal that comes before the process has stopped does nothing, so there is one more until
    // it says that it goes on. Nothing wakes this process when that changes in their shared memory,
    // hence the millisecond.
    while (!shared->resumed) {
      ::kill(shared->stopped, SIGCONT);
      std::this_thread::sleep_for(1ms);
    }
  }
  meet_outside(one, shared);
}

/// The part of this rank, at whose end its process ends.
void play(Communicator& comm, const Case& one, const SharedCounts& shared,
          Latenesses* latenesses = nullptr) {
  if (comm.rank() == one.faulty)
    misbehave(comm, one, shared);
  else
    survive(comm, one, shared, latenesses);
  static_cast<void>(comm.abort());
  std::_Exit(testing::Test::HasFailure() ? 1 : 0);
}

void try_case(const Case& one, Latenesses& latenesses) {
  SCOPED_TRACE(std::string("rank ") + std::to_string(index(one.faulty)) + " " +
               kFaults[static_cast<int>(one.fault)] + ", " +
               kActions[static_cast<int>(one.action)] + ", " + std::to_string(one.limit.count()) +
               " ms, " + one.transport);
  const SharedCounts shared;
  const auto outcomes = run_processes(
      kRanks, [&](Communicator& comm) { play(comm, one, shared, &latenesses); },
      [&](int) {
        return Variables{
            {"ANYCCL_TRANSPORT", one.transport},
            {"ANYCCL_OP_TIMEOUT", std::to_string(1e-3 * static_cast<double>(one.limit.count()))}};
      },
      20);
  for (int r = 0; r < kRanks; ++r) {
    const bool dies = one.fault == Fault::was_killed && r == index(one.faulty);
    const Outcome& outcome = outcomes[static_cast<std::size_t>(r)];
    EXPECT_EQ(outcome.exit_code, dies ? -SIGKILL : 0) << "rank " << r << ": " << outcome.output;
  }
}

TEST(Absence, of_any_kind_ends_in_time_in_an_error_that_names_the_rank) {
  std::mt19937 random(20261124);
  const auto draw = [&](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  const char* transports[] = {"shm", "unix", "tcp"};
  const Shared<Latenesses> latenesses;
  const int cases = effort(12, 24, 400);
  for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) {
    Case one{static_cast<Fault>(i % 6),
             static_cast<Action>(draw(static_cast<int>(std::size(kActions)))),
             std::chrono::milliseconds(50 + draw(351)), Rank{draw(kRanks)}, transports[draw(3)]};
    if (one.fault == Fault::is_late) one.limit = 10s;  // it does come
    try_case(one, *latenesses);
  }
  latenesses->report();
}

/// The log of one rank of a group in which rank 2 does what `fault` does, until two lines are there
/// or a second has passed.
std::string log_of_a_wait(const char* transport, Fault fault,
                          const std::function<Status(Communicator&)>& before = {}) {
  const TemporaryFolder folder;
  const SharedCounts shared;
  const Case one{fault, Action::all_reduce, 500ms, Rank{2}, transport};
  const auto outcomes = run_processes(
      kRanks,
      [&](Communicator& comm) {
        if (before) {
          EXPECT_OK(before(comm));
        }
        play(comm, one, shared);
      },
      [&](int rank) {
        return Variables{{"ANYCCL_TRANSPORT", transport},
                         {"ANYCCL_WARN_AFTER", "0.2"},
                         {"ANYCCL_OP_TIMEOUT", "0.5"},
                         {"ANYCCL_DEBUG_FILE", folder.path() + "/" + std::to_string(rank)}};
      },
      20);
  expect_all_passed(outcomes);
  std::ifstream file(folder.path() + "/0");
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_in(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

std::size_t count_in(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

class Warning : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, Warning, testing::Values("shm", "tcp"),
                         [](const auto& transport) { return std::string(transport.param); });

TEST_P(Warning, comes_once_in_a_wait_and_names_the_rank_that_keeps_back_all_others) {
  const std::string log = log_of_a_wait(GetParam(), Fault::never_calls);
  EXPECT_EQ(count_in(log, "no progress for"), 1U) << log;
  expect_in(log,
            {"communicator ", " of 3 ranks: no progress for 0.2", "rank 0 (host ",
             "in operation 1, all_reduce of 2 f32, sum, step ", "not there yet: rank 2 (host "});
  expect_in(log, {std::string_view(GetParam()) == "shm" ? ") has called no collective"
                                                        : ") has sent nothing of a collective"});
}

TEST_P(Warning, says_that_a_process_is_stopped) {
  expect_in(
      log_of_a_wait(GetParam(), Fault::is_stopped),
      {"not there yet: rank 2 (host ", ", and its process is stopped (by a signal or a debugger)"});
}

TEST_P(Warning, says_which_call_a_rank_was_in_last) {
  const std::string log = log_of_a_wait(GetParam(), Fault::never_calls, [](Communicator& comm) {
    std::vector<float> x{1};
    return wait(comm.all_reduce(view(x), view(x), ReduceOp::max));
  });
  expect_in(log,
            {"in operation 2, all_reduce of 2 f32", "not there yet: rank 2 (host ", "operation 1"});
}

TEST(WarningOverSharedCounts, says_that_a_rank_waits_for_a_message) {
  expect_in(log_of_a_wait("shm", Fault::is_in_a_receive),
            {"not there yet: rank 2 (host ", ") waits for a message of rank 1"});
}

}  // namespace
}  // namespace anyccl::test
