#include "perf/measure.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/error.hpp"

namespace anyccl::cli {
namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC

std::int64_t ns_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

constexpr std::size_t kLine = 64;

/// Sets the first byte of every cache line to 0.
void write_every_line(std::span<std::byte> memory) {
  for (std::size_t i = 0; i < memory.size(); i += kLine)
    *static_cast<volatile std::byte*>(&memory[i]) = std::byte{0};
}
/// Reads every cache line.
void read_every_line(std::span<const std::byte> memory) {
  for (std::size_t i = 0; i < memory.size(); i += kLine)
    (void)*static_cast<const volatile std::byte*>(&memory[i]);
}

/// One case on one rank while it is measured.
class Run {
 public:
  Run(const Operation& operation, Exercise& exercise, const Protocol& protocol, const Comm& comm)
      : operation_(operation), exercise_(exercise), protocol_(protocol), comm_(comm) {}

  std::int64_t wrong() const { return wrong_; }
  /// True: every call gets new values. False: zeros, so that sums in place do not grow.
  bool compares() const { return protocol_.touch && protocol_.check; }

  /// Makes the warm-up calls. Returns the protocol's number of calls to measure, or else how many
  /// the budget is enough for, from 20 to 100,000.
  Result<int> warm_up(double budget_s);
  /// The times of this rank, in ns. If the calls are not compared, one more call is, untimed.
  Result<std::vector<std::int64_t>> timed_calls(int calls);
  /// Returns the total time of `calls` calls on one input. Compares the result, unless in place.
  Result<std::int64_t> time_back_to_back(int calls, bool in_place);

 private:
  /// A call, with the protocol's steps before and after it; returns the call's own time.
  Result<std::int64_t> timed_call();
  Result<std::int64_t> plain_call();
  void check_result();
  /// One call on fresh input, whatever the protocol says.
  Status look_at_one();

  const Operation& operation_;
  Exercise& exercise_;
  const Protocol& protocol_;
  const Comm& comm_;
  std::uint32_t turn_ = 0;
  std::int64_t wrong_ = 0;
};

Result<std::int64_t> Run::plain_call() {
  const Clock::time_point start = Clock::now();
  const anycclResult_t result = exercise_.call();
  const std::int64_t ns = ns_since(start);
  ANYCCL_CHECK(comm_.check(result, operation_.call));
  return ns;
}

Result<std::int64_t> Run::timed_call() {
  if (compares()) {
    exercise_.prepare(++turn_);
  } else if (protocol_.touch) {
    read_every_line(exercise_.extents().output);
    write_every_line(exercise_.extents().input);
  }
  // A root need not wait for the others: it would run ahead, and time how calls overlap.
  if (operation_.has_root) ANYCCL_CHECK(comm_.barrier());
  ANYCCL_TRY(const std::int64_t ns, plain_call());
  if (compares()) check_result();
  return ns;
}

void Run::check_result() {
  wrong_ += static_cast<std::int64_t>(exercise_.count_wrong(turn_));
}

Status Run::look_at_one() {
  exercise_.prepare(++turn_);
  ANYCCL_CHECK(plain_call().status());
  check_result();
  return {};
}

Result<int> Run::warm_up(double budget_s) {
  constexpr double kFewest = 20, kMost = 100'000;
  std::int64_t fastest = std::numeric_limits<std::int64_t>::max();
  const int calls = protocol_.iterations ? protocol_.warmups : std::max(1, protocol_.warmups);
  for (int i = 0; i < calls; ++i) {
    const Clock::time_point start = Clock::now();
    ANYCCL_CHECK(timed_call().status());
    fastest = std::min(fastest, ns_since(start));
  }
  if (protocol_.iterations) return *protocol_.iterations;
  ANYCCL_CHECK(comm_.max({&fastest, 1}));
  return static_cast<int>(
      std::clamp(budget_s * 1e9 / static_cast<double>(fastest), kFewest, kMost));
}

Result<std::vector<std::int64_t>> Run::timed_calls(int calls) {
  std::vector<std::int64_t> times(static_cast<std::size_t>(calls));
  ANYCCL_CHECK(comm_.barrier());
  for (std::int64_t& time : times) {
    ANYCCL_TRY(time, timed_call());
  }
  if (!compares()) ANYCCL_CHECK(look_at_one());
  return times;
}

Result<std::int64_t> Run::time_back_to_back(int calls, bool in_place) {
  exercise_.prepare(++turn_);
  ANYCCL_CHECK(comm_.barrier());
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < calls; ++i)
    if (const anycclResult_t result = exercise_.call(); result != anycclSuccess)
      return comm_.check(result, operation_.call);
  const std::int64_t ns = ns_since(start);
  if (!in_place) check_result();
  return ns;
}

}  // namespace

Result<Measurement> measure(const Operation& operation, Exercise& exercise,
                            const Protocol& protocol, bool in_place, int columns,
                            const Comm& comm) {
  constexpr double kRowBudget_s = 0.25;
  Run run(operation, exercise, protocol, comm);
  if (!run.compares()) std::ranges::fill(exercise.extents().input, std::byte{0});
  ANYCCL_TRY(const int calls, run.warm_up(kRowBudget_s / columns));
  ANYCCL_TRY(std::vector<std::int64_t> times, run.timed_calls(calls));
  std::int64_t loop_ns = 0;
  if (protocol.loop) {
    ANYCCL_TRY(loop_ns, run.time_back_to_back(calls, in_place));
  }
  Measurement result;
  ANYCCL_TRY(result.plan, comm.last_plan());

  // From here on the library is used, not measured.
  result.wrong = run.wrong();
  ANYCCL_CHECK(comm.max(times));
  ANYCCL_CHECK(comm.max({&loop_ns, 1}));
  ANYCCL_CHECK(comm.sum({&result.wrong, 1}));
  result.call = summarize(std::move(times));
  result.loop_us = static_cast<double>(loop_ns) / 1e3 / calls;
  return result;
}

}  // namespace anyccl::cli
