#include "framework/communicator/tune_at_start.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr nanoseconds kBudget = std::chrono::milliseconds(19);  // of 20, to agree in the rest
constexpr std::size_t kSizes[] = {512, 4 << 10, 32 << 10, 256 << 10};  // bytes
constexpr std::size_t kFewestTurns = 4;

/// A clock says little about one small call: a turn has more of them.
constexpr nanoseconds kSmallTurn = std::chrono::microseconds(10);
constexpr std::int64_t kMostCalls = 16;

/// One algorithm at one size.
struct Contest {
  const Algorithm* algorithm;
  std::size_t size;                   // index in kSizes
  std::vector<std::int64_t> ns = {};  // of a call, by turn
};

/// The value that this many quarters of them, in ascending order, do not exceed.
std::int64_t quarter(const std::vector<std::int64_t>& values, std::size_t quarters) {
  return values[values.size() * quarters / 4];
}

class StartTuner {
 public:
  StartTuner(Comm& comm, Deadline deadline) : comm_(comm), deadline_(deadline) {}
  Status run();

 private:
  TunerQuery query(std::size_t bytes) const;
  void enter_contests();
  Status measure();
  nanoseconds expected_of(const Contest& contest) const;
  Result<int> calls_for(const Contest& contest);
  Status take_turn(Contest& contest, int calls);
  Status agree();
  TunerTable results();
  void tell(const TunerPolicy& policy) const;
  Status run_in_time(Call call);

  Comm& comm_;
  const TunerPolicy usual_ = comm_.membership().policy;
  const Deadline deadline_;
  const Clock::time_point start_ = Clock::now();
  std::vector<Contest> contests_;  // ascending in size
  std::vector<std::byte> input_ = std::vector<std::byte>(kSizes[std::size(kSizes) - 1]);
  std::vector<std::byte> output_ = input_;
  std::array<nanoseconds, std::size(kSizes)> slowest_{};  // call of each size, at this rank
};

TunerQuery StartTuner::query(std::size_t bytes) const {
  const Membership& me = comm_.membership();
  return {{Collective::all_reduce, me.size, Rank{0}, false, me.near_of},
          bytes,
          me.network,
          me.ranks_per_core};
}

/// Those that no other measurements decide.
void StartTuner::enter_contests() {
  for (std::size_t size = 0; size < std::size(kSizes); ++size) {
    const TunerQuery q = query(kSizes[size]);
    const auto choice = select_algorithm(q, comm_.membership().policy);
    if (!choice.ok() || choice->table != nullptr) continue;
    for (const Algorithm* a : all_algorithms())
      if (a->collective == Collective::all_reduce && a->loaded == nullptr && a->supports(q.shape))
        contests_.push_back({a, size});
  }
}

Status StartTuner::run_in_time(Call call) {
  call.timeout =
      std::chrono::milliseconds(std::max(1, deadline_.poll_ms(std::numeric_limits<int>::max())));
  return comm_.run(call);
}

/// How long a call may take, by this rank's clock.
nanoseconds StartTuner::expected_of(const Contest& contest) const {
  const std::size_t size = contest.size;
  if (slowest_[size].count() > 0 || size == 0) return slowest_[size];
  // Nobody has tried: as much slower as it has more bytes.
  return slowest_[size - 1] * static_cast<std::int64_t>(kSizes[size] / kSizes[size - 1]);
}

/// How many calls rank 0 wants in this turn; 0: there is no time for it.
Result<int> StartTuner::calls_for(const Contest& contest) {
  std::int64_t calls =
      contest.ns.empty()
          ? 1
          : std::clamp<std::int64_t>(kSmallTurn.count() / contest.ns.back(), 1, kMostCalls);
  if (Clock::now() - start_ + expected_of(contest) * (1 + calls) > kBudget) calls = 0;
  std::byte agreed{static_cast<unsigned char>(calls)};
  ANYCCL_CHECK(run_in_time({.collective = Collective::broadcast,
                            .dtype = DType::u8,
                            .count = 1,
                            .input = &agreed,
                            .output = &agreed}));
  return static_cast<int>(agreed);
}

/// After one call that prepares. Programs write their data before they send it.
Status StartTuner::take_turn(Contest& contest, int calls) {
  TunerPolicy policy = usual_;
  policy.measured = contest.algorithm;
  comm_.set_policy(std::move(policy));
  const std::size_t bytes = kSizes[contest.size];
  const Call call{.count = bytes / sizeof(float), .input = input_.data(), .output = output_.data()};
  ANYCCL_CHECK(run_in_time(call));
  nanoseconds all{0};
  for (int i = 0; i < calls; ++i) {
    std::fill_n(input_.begin(), bytes, std::byte{static_cast<unsigned char>(i)});
    const Clock::time_point begin = Clock::now();
    ANYCCL_CHECK(run_in_time(call));
    all += Clock::now() - begin;
  }
  contest.ns.push_back(std::max<std::int64_t>(1, all.count() / calls));
  slowest_[contest.size] = std::max(slowest_[contest.size], nanoseconds(contest.ns.back()));
  return {};
}

/// Everyone has a turn, again and again: what disturbs the machine for a while disturbs all.
Status StartTuner::measure() {
  for (;;)
    for (Contest& contest : contests_) {
      ANYCCL_TRY(const int calls, calls_for(contest));
      if (calls == 0) return {};
      ANYCCL_CHECK(take_turn(contest, calls));
    }
}

/// Every time becomes that of the slowest rank.
Status StartTuner::agree() {
  std::vector<std::int64_t> all;
  for (const Contest& c : contests_) all.insert(all.end(), c.ns.begin(), c.ns.end());
  auto* const bytes = reinterpret_cast<std::byte*>(all.data());
  ANYCCL_CHECK(run_in_time({.dtype = DType::i64,
                            .op = ReduceOp::max,
                            .count = all.size(),
                            .input = bytes,
                            .output = bytes}));
  auto next = all.begin();
  for (Contest& c : contests_)
    for (std::int64_t& ns : c.ns) ns = *next++;
  return {};
}

/// Medians, of the sizes at which all had enough turns. Who has not been faster than what is built
/// in with three quarters of its turns against three quarters of the other's was no faster.
TunerTable StartTuner::results() {
  TunerTable table("what was measured at the start");
  const Membership& me = comm_.membership();
  std::array<std::size_t, std::size(kSizes)> turns{};
  turns.fill(std::numeric_limits<std::size_t>::max());
  for (Contest& c : contests_) {
    turns[c.size] = std::min(turns[c.size], c.ns.size());
    std::sort(c.ns.begin(), c.ns.end());
  }
  for (const Contest& usual : contests_) {
    const auto built_in = select_algorithm(query(kSizes[usual.size]), {});
    if (turns[usual.size] < kFewestTurns || !built_in.ok() ||
        built_in->algorithm != usual.algorithm)
      continue;
    for (const Contest& c : contests_) {
      if (c.size != usual.size) continue;
      std::int64_t ns = quarter(c.ns, 2);
      if (quarter(c.ns, 3) >= quarter(usual.ns, 1)) ns = std::max(ns, quarter(usual.ns, 2));
      table.add(*c.algorithm, me.size, me.network, static_cast<double>(kSizes[c.size]),
                static_cast<double>(ns) / 1e3);
    }
  }
  return table;
}

void StartTuner::tell(const TunerPolicy& policy) const {
  const Membership& me = comm_.membership();
  if (me.rank != Rank{0} || !log_enabled(LogSubsystem::tuning)) return;
  std::string text;
  for (const std::size_t bytes : kSizes)
    if (const auto choice = select_algorithm(query(bytes), policy); choice.ok())
      text += fmt::format("{} {} bytes {} ({})", text.empty() ? "" : ";", bytes,
                          choice->algorithm->name, reason(*choice));
  log(LogSubsystem::tuning, "all_reduce on {} ranks, measured in {:.1f} ms:{}", me.size,
      std::chrono::duration<double, std::milli>(Clock::now() - start_).count(), text);
}

Status StartTuner::run() {
  TunerPolicy policy = usual_;
  enter_contests();
  if (contests_.empty()) return {};
  ANYCCL_CHECK(measure());
  comm_.set_policy(usual_);
  ANYCCL_CHECK(agree());
  policy.tables.push_back(std::make_shared<const TunerTable>(results()));
  tell(policy);
  comm_.set_policy(std::move(policy));
  return {};
}

}  // namespace

Status tune_at_start(Comm& comm, Deadline deadline) {
  const TunerPolicy& users = comm.membership().policy;
  if (comm.size() == 1 || users.environment.algorithms.names(Collective::all_reduce) ||
      users.communicator.algorithms.names(Collective::all_reduce))
    return {};
  return StartTuner(comm, deadline).run();
}

}  // namespace anyccl
