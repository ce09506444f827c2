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
constexpr std::size_t kFewestTurns = 3, kUsualTurns = 15, kMostTurns = 60;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

/// An algorithm at one place.
struct Entrant {
  const Algorithm* algorithm = nullptr;
  std::vector<double> us = {};  ///< By turn.
  Measurement last = {};
  bool hopeless = false;
};

/// Nothing that is found out about them will make them the best.
void drop_hopeless(std::vector<Entrant>& entrants) {
  double best = median(entrants.front().us);
  for (const Entrant& e : entrants) best = std::min(best, median(e.us));
  for (Entrant& e : entrants) e.hopeless = e.us.size() > 1 && least(e.us) > 2 * best;
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
        places_(places_of(options, comm.ranks())),
        share_(share_of(options, comm.ranks())) {
    if (comm.rank() == 0) line_.emplace();
  }

  Status run();
  std::vector<Row> rows() && { return std::move(rows_); }

 private:
  Result<double> elapsed_s() const;
  Result<bool> compete(const Place& place, double until_s);
  Status take_turn(const Place& place, Exercise& exercise, Entrant& entrant, double turn_us) const;
  void keep(const Place& place, const Case& c, std::vector<Entrant>& entrants);
  void show(const Place& place, double elapsed_s);

  const Comm& comm_;
  const Memory input_, output_;
  const std::vector<Place> places_;
  const Share share_;
  const Clock::time_point start_ = Clock::now();
  std::size_t done_ = 0;  // places
  std::vector<Row> rows_;
  std::optional<ProgressLine> line_;
};

/// Rank 0's clock, which all decide by.
Result<double> Tuning::elapsed_s() const {
  std::int64_t ns = comm_.rank() == 0 ? (Clock::now() - start_) / std::chrono::nanoseconds(1) : 0;
  ANYCCL_CHECK(comm_.max({&ns, 1}));
  return static_cast<double>(ns) / 1e9;
}

Status Tuning::run() {
  for (const Place& place : places_) {
    ANYCCL_TRY(const double now_s, elapsed_s());
    const auto left = static_cast<double>(places_.size() - done_);
    ANYCCL_TRY(const bool in_time, compete(place, now_s + (share_.own_s - now_s) / left));
    if (!in_time) break;
    ++done_;
  }
  return {};
}

/// False: the job's time is over. `until_s`: when this place has had its part of it.
Result<bool> Tuning::compete(const Place& place, double until_s) {
  const Case c{.type = kType, .count = place.count, .rank = comm_.rank(), .ranks = comm_.ranks()};
  const auto exercise = place.operation->make(c, input_.get(), output_.get(), comm_.get());
  std::vector<Entrant> entrants;
  for (const Algorithm* a : candidates_of(*place.operation, c.ranks)) entrants.push_back({a});
  ANYCCL_TRY(double now_s, elapsed_s());
  const double turn_us =
      1e6 * (until_s - now_s) / static_cast<double>(kUsualTurns * entrants.size());
  for (std::size_t turn = 0; turn < kMostTurns && (turn < kFewestTurns || now_s < until_s);
       ++turn) {
    for (Entrant& entrant : entrants) {
      if (entrant.hopeless) continue;
      ANYCCL_CHECK(take_turn(place, *exercise, entrant, turn_us));
      ANYCCL_TRY(now_s, elapsed_s());
      show(place, now_s);
      if (now_s > share_.own_s) return false;
    }
    drop_hopeless(entrants);
  }
  keep(place, c, entrants);
  return true;
}

/// About `turn_us` long, if one call is not longer. The first turn is one call, after one that
/// finds everything cold.
Status Tuning::take_turn(const Place& place, Exercise& exercise, Entrant& entrant,
                         double turn_us) const {
  comm_.use(entrant.algorithm);
  constexpr double kLong_us = 1000;  // so that getting ready for it does not count
  const double us = entrant.us.empty() ? 0 : least(entrant.us);
  // Most of a turn goes into writing inputs and comparing results.
  const double calls = us > 0 ? std::clamp(turn_us / (3 * us), 1.0, 50.0) : 1;
  const Protocol protocol{
      .warmups = us < kLong_us ? 1 : 0, .iterations = static_cast<int>(calls), .loop = false};
  ANYCCL_TRY(entrant.last, measure(*place.operation, exercise, protocol, false, 1, comm_));
  if (entrant.last.wrong > 0)
    return error(Code::internal, "{} gave {} wrong values: please report it",
                 id(*entrant.algorithm), entrant.last.wrong);
  entrant.us.push_back(entrant.last.call.median_us);
  return {};
}

void Tuning::keep(const Place& place, const Case& c, std::vector<Entrant>& entrants) {
  for (Entrant& entrant : entrants) {
    entrant.last.call.median_us = median(entrant.us);
    rows_.push_back(row_of(*place.operation, c, kRedops[0].name, std::move(entrant.last)));
  }
}

void Tuning::show(const Place& place, double elapsed_s) {
  if (!line_) return;
  const double part = std::max(static_cast<double>(done_) / static_cast<double>(places_.size()),
                               std::min(1.0, elapsed_s / share_.own_s));
  const double all_s = share_.before_s + share_.own_s + share_.after_s;
  line_->show((share_.before_s + part * share_.own_s) / all_s,
              (1 - part) * share_.own_s + share_.after_s,
              fmt::format("{} ranks, {} of {} bytes", comm_.ranks(), place.operation->name,
                          place.count * kType.bytes));
}

}  // namespace

std::vector<const Algorithm*> candidates_of(const Operation& operation, int ranks) {
  std::vector<const Algorithm*> found;
  for (const Algorithm* a : all_algorithms())
    if (name(a->collective) == operation.name && a->supports({a->collective, ranks}))
      found.push_back(a);
  return found;
}

std::vector<Place> places_of(const TuneOptions& options, int ranks) {
  std::vector<Place> places;
  const auto count = [&](const Operation& operation, std::size_t size) {
    return operation.has_data ? operation.count(std::max<std::size_t>(1, size / kType.bytes), ranks)
                              : 0;
  };
  for (std::size_t i = 0; i < options.sizes.size(); ++i)
    for (const Operation* operation : options.operations) {
      const std::size_t here = count(*operation, options.sizes[i]);
      const bool again = i > 0 && count(*operation, options.sizes[i - 1]) == here;
      if (!again && candidates_of(*operation, ranks).size() > 1)
        places.push_back({operation, here});
    }
  return places;
}

Result<std::vector<Row>> tune(const TuneOptions& options, const Comm& comm) {
  const std::size_t bytes = buffer_bytes(options.sizes, comm.ranks());
  ANYCCL_TRY(Memory input, Memory::allocate(bytes, false));
  ANYCCL_TRY(Memory output, Memory::allocate(bytes, false));
  Tuning tuning(options, comm, std::move(input), std::move(output));
  ANYCCL_CHECK(tuning.run());
  return std::move(tuning).rows();
}

}  // namespace anyccl::cli
