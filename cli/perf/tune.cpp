#include "perf/tune.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "perf/memory.hpp"
#include "perf/progress.hpp"
#include "perf/sweep.hpp"

namespace anyccl::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr TypeName kType = kTypes[0];
constexpr std::size_t kFewestTurns = 3, kMostTurns = 100;
constexpr double kFirstRound = 0.4;  // of the time

/// An algorithm at one cell.
struct Entrant {
  const Algorithm* algorithm = nullptr;
  std::vector<Summary> turns = {};
  std::string plan = {};
  bool hopeless = false;
};

double median(const std::vector<Summary>& turns, double Summary::*time) {
  std::vector<double> times;
  for (const Summary& turn : turns) times.push_back(turn.*time);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// The median of the fastest turn.
double shortest_us(const std::vector<Summary>& turns) {
  const auto faster = [](const Summary& a, const Summary& b) { return a.median_us < b.median_us; };
  return std::min_element(turns.begin(), turns.end(), faster)->median_us;
}

/// Medians over the turns.
Summary summary_of(const std::vector<Summary>& turns) {
  return {median(turns, &Summary::median_us), median(turns, &Summary::min_us),
          median(turns, &Summary::p99_us)};
}

struct Contest {
  TunerCell cell;
  std::vector<Entrant> entrants;
};

/// More turns will not make these the best.
void drop_hopeless(std::vector<Entrant>& entrants) {
  const auto median_us = [](const Entrant& e) { return median(e.turns, &Summary::median_us); };
  double best_us = median_us(entrants.front());
  for (const Entrant& e : entrants) best_us = std::min(best_us, median_us(e));
  for (Entrant& e : entrants) e.hopeless = e.turns.size() > 1 && shortest_us(e.turns) > 2 * best_us;
}

/// The part of the time that belongs to one job of several.
struct Share {
  double before_s = 0, own_s = 0, after_s = 0;
};

/// More ranks take longer.
Share share_of(const TuneOptions& options, int ranks) {
  const double all = std::accumulate(options.ranks.begin(), options.ranks.end(), 0.0);
  Share share;
  for (const int r : options.ranks)
    (r < ranks   ? share.before_s
     : r > ranks ? share.after_s
                 : share.own_s) += options.seconds * r / all;
  return share;
}

class Tuning {
 public:
  Tuning(const TuneOptions& options, const Comm& comm, Memory input, Memory output)
      : comm_(comm),
        input_(std::move(input)),
        output_(std::move(output)),
        share_(share_of(options, comm.ranks())),
        compares_all_(options.compares_all) {
    for (const TunerCell& cell : cells_of(options, comm.ranks())) {
      Contest& contest = contests_.emplace_back(Contest{cell, {}});
      for (const Algorithm* a : candidates_of(*cell.operation, comm.ranks()))
        contest.entrants.push_back({a});
    }
    if (comm.rank() == 0) line_.emplace();
  }

  Status run();
  std::vector<Row> complete_rows() const;

 private:
  Case case_of(const TunerCell& cell) const {
    return {.type = kType, .count = cell.count, .rank = comm_.rank(), .ranks = comm_.ranks()};
  }
  Result<double> elapsed_s() const;
  Result<std::size_t> go_round(std::size_t contests, double until_s);
  Result<bool> compete(Contest& contest, double until_s);
  Status take_turn(const TunerCell& cell, Exercise& exercise, Entrant& entrant) const;
  void show(const TunerCell& cell, double elapsed_s);

  const Comm& comm_;
  const Memory input_, output_;
  const Share share_;
  const bool compares_all_;
  const Clock::time_point start_ = Clock::now();
  std::vector<Contest> contests_;
  std::optional<ProgressLine> line_;
};

/// By rank 0's clock, on which all ranks decide.
Result<double> Tuning::elapsed_s() const {
  std::int64_t ns = comm_.rank() == 0 ? (Clock::now() - start_) / std::chrono::nanoseconds(1) : 0;
  ANYCCL_CHECK(comm_.max({&ns, 1}));
  return static_cast<double>(ns) / 1e9;
}

/// A cell that finds no time in the first round, the longest, would not get its turns.
Status Tuning::run() {
  ANYCCL_TRY(const std::size_t begun, go_round(contests_.size(), kFirstRound * share_.own_s));
  contests_.resize(begun);
  for (std::size_t turn = 1; turn < kMostTurns; ++turn) {
    ANYCCL_TRY(const std::size_t done, go_round(begun, share_.own_s));
    if (done < begun) break;
  }
  return {};
}

/// One turn for every entrant. Returns how many contests finished before the time was over.
Result<std::size_t> Tuning::go_round(std::size_t contests, double until_s) {
  for (std::size_t i = 0; i < contests; ++i) {
    ANYCCL_TRY(const bool in_time, compete(contests_[i], until_s));
    if (!in_time) return i;
  }
  return contests;
}

/// Gives each entrant that is not hopeless a turn; false: the time is over. Otherwise decides anew
/// which entrants are hopeless, unless all are compared.
Result<bool> Tuning::compete(Contest& contest, double until_s) {
  const auto exercise =
      contest.cell.operation->make(case_of(contest.cell), input_.get(), output_.get(), comm_.get());
  for (Entrant& entrant : contest.entrants) {
    if (entrant.hopeless) continue;
    ANYCCL_CHECK(take_turn(contest.cell, *exercise, entrant));
    ANYCCL_TRY(const double now_s, elapsed_s());
    show(contest.cell, now_s);
    if (now_s > until_s) return false;
  }
  if (!compares_all_) drop_hopeless(contest.entrants);
  return true;
}

/// Takes about a millisecond, or one longer call; the first turn is one call, after one with
/// everything cold. Leaves the communicator with the entrant's algorithm.
Status Tuning::take_turn(const TunerCell& cell, Exercise& exercise, Entrant& entrant) const {
  comm_.use(entrant.algorithm);
  constexpr double kTurn_us = 1000;
  constexpr double kLong_us = 1000;  // calls that take longer need no warm-up
  const double us = entrant.turns.empty() ? 0 : shortest_us(entrant.turns);
  const double calls = us > 0 ? std::clamp(kTurn_us / us, 1.0, 5000.0) : 1;
  const Protocol protocol{.warmups = us < kLong_us || compares_all_ ? 1 : 0,
                          .iterations = static_cast<int>(calls),
                          .check = false,
                          .loop = false};
  ANYCCL_TRY(Measurement measured, measure(*cell.operation, exercise, protocol, false, 1, comm_));
  if (measured.wrong > 0)
    return error(Code::internal, "{} gave {} wrong values: please report it",
                 id(*entrant.algorithm), measured.wrong);
  entrant.turns.push_back(measured.call);
  entrant.plan = std::move(measured.plan);
  return {};
}

/// The cells in which all have had enough turns.
std::vector<Row> Tuning::complete_rows() const {
  std::vector<Row> rows;
  for (const auto& [cell, entrants] : contests_) {
    const bool enough = std::all_of(entrants.begin(), entrants.end(), [](const Entrant& e) {
      return e.hopeless || e.turns.size() >= kFewestTurns;
    });
    for (const Entrant& e : entrants)
      if (enough)
        rows.push_back(row_of(*cell.operation, case_of(cell), kRedops[0].name,
                              {.call = summary_of(e.turns), .plan = e.plan}));
  }
  return rows;
}

void Tuning::show(const TunerCell& cell, double elapsed_s) {
  if (!line_) return;
  const double part = std::min(1.0, elapsed_s / share_.own_s);
  const double all_s = share_.before_s + share_.own_s + share_.after_s;
  line_->show((share_.before_s + part * share_.own_s) / all_s,
              (1 - part) * share_.own_s + share_.after_s,
              fmt::format("{} ranks, {} of {} bytes", comm_.ranks(), cell.operation->name,
                          cell.count * kType.bytes));
}

}  // namespace

std::vector<const Algorithm*> candidates_of(const Operation& operation, int ranks) {
  std::vector<const Algorithm*> found;
  for (const Algorithm* a : all_algorithms())
    if (name(a->collective) == operation.name && a->supports({a->collective, ranks}))
      found.push_back(a);
  return found;
}

std::vector<TunerCell> cells_of(const TuneOptions& options, int ranks) {
  std::vector<TunerCell> cells;
  const auto count = [&](const Operation& operation, std::size_t size) {
    return operation.has_data ? operation.count(std::max<std::size_t>(1, size / kType.bytes), ranks)
                              : 0;
  };
  for (std::size_t i = 0; i < options.sizes.size(); ++i)
    for (const Operation* operation : options.operations) {
      const std::size_t here = count(*operation, options.sizes[i]);
      const bool again = i > 0 && count(*operation, options.sizes[i - 1]) == here;
      if (!again && candidates_of(*operation, ranks).size() > 1) cells.push_back({operation, here});
    }
  return cells;
}

Result<std::vector<Row>> tune(const TuneOptions& options, const Comm& comm) {
  const std::size_t bytes = buffer_bytes(options.sizes, comm.ranks());
  ANYCCL_TRY(Memory input, Memory::allocate(bytes, false));
  ANYCCL_TRY(Memory output, Memory::allocate(bytes, false));
  Tuning tuning(options, comm, std::move(input), std::move(output));
  ANYCCL_CHECK(tuning.run());
  return tuning.complete_rows();
}

}  // namespace anyccl::cli
