#include "calibrate/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "draw/table.hpp"
#include "json_number.hpp"
#include "perf/statistics.hpp"
#include "simulate/read_network.hpp"
#include "simulate/runs.hpp"

namespace anyccl::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Simulates the run that a row measured, all ranks on one host. Errors: invalid_argument naming an
/// unknown algorithm; throws Json::exception for a missing field.
Result<Prediction> prediction_of(const Json& row, const Machine& machine) {
  Prediction p;
  p.algorithm = row.at("algorithm").get<std::string>();
  p.ranks = whole_number<int>(row.at("ranks"));
  p.bytes = whole_number<std::size_t>(row.at("bytes"));
  p.measured_s = row.at("median_us").get<double>() * 1e-6;
  p.least_s = row.at("min_us").get<double>() * 1e-6;
  p.p99_s = row.at("p99_us").get<double>() * 1e-6;
  for (const Algorithm* a : all_algorithms()) {
    if (id(*a) != p.algorithm) continue;
    ANYCCL_TRY(const Network network, read_network("flat", static_cast<std::uint32_t>(p.ranks)));
    SimulationSetting setting;
    setting.machine = machine;
    setting.touches = true;  // as `anyccl tune` does between calls
    const std::size_t sizes[] = {p.bytes};
    ANYCCL_TRY(const std::vector<SimulatedRun> runs,
               simulate_sizes(*a, p.ranks, sizes, network, setting));
    p.predicted_s = runs[0].result.seconds;
    return p;
  }
  return error(Code::invalid_argument, "there is no algorithm {}", p.algorithm);
}

/// "n = 8 (held out): error of 28 predictions 12 % in the median, 31 % at the 90th percentile"
std::string sum_line(const std::string& what, const std::vector<const Prediction*>& some) {
  std::vector<double> errors;
  for (const Prediction* p : some) errors.push_back(std::abs(p->error()));
  return fmt::format(
      "{}: error of {} predictions {:.0f} % in the median, {:.0f} % at the 90th percentile\n", what,
      errors.size(), 100 * quantile(errors, 0.5), 100 * quantile(errors, 0.9));
}

std::string collective_of(const Prediction& p) {
  return p.algorithm.substr(0, p.algorithm.find('/'));
}

/// How good it is to choose by the model: what people ask it for.
std::string choice_line(const std::vector<const Prediction*>& some) {
  std::map<std::tuple<std::string, int, std::size_t>, std::vector<const Prediction*>> places;
  for (const Prediction* p : some) places[{collective_of(*p), p->ranks, p->bytes}].push_back(p);
  std::size_t good = 0;
  std::vector<double> losses;
  for (const auto& [place, all] : places) {
    const auto by = [&here = all](double Prediction::*time) {
      return *std::min_element(here.begin(), here.end(),
                               [&](const auto* a, const auto* b) { return a->*time < b->*time; });
    };
    const double loss =
        by(&Prediction::predicted_s)->measured_s / by(&Prediction::measured_s)->measured_s;
    losses.push_back(loss);
    if (loss <= 1.1) ++good;
  }
  return fmt::format(
      "  the algorithm that the model says is fastest is within 10 % of the fastest in {} of {} "
      "places, x{:.2f} in the median\n",
      good, places.size(), quantile(losses, 0.5));
}

}  // namespace

bool can_predict(std::string_view operation) {
  return operation == "all_reduce" || operation == "broadcast" || operation == "reduce";
}

Result<std::vector<Prediction>> predict(const std::string& rows, const Machine& machine) {
  const Json json = Json::parse(rows, nullptr, false);
  if (!json.is_array()) return error(Code::invalid_argument, "not a list of measurements");
  std::vector<Prediction> predictions;
  for (const Json& row : json) {
    const auto operation = row.at("op").get<std::string>();
    if (!can_predict(operation))
      return error(Code::invalid_argument,
                   "--validate takes all_reduce, broadcast and reduce, not {}", operation);
    ANYCCL_TRY(Prediction p, prediction_of(row, machine));
    predictions.push_back(std::move(p));
  }
  return predictions;
}

std::vector<CollectiveFactor> factors_of(const std::vector<Prediction>& predictions,
                                         int least_ranks, int most_ranks) {
  std::map<std::size_t, std::vector<double>> multiples;
  for (const Prediction& p : predictions)
    if (p.ranks >= least_ranks && p.ranks <= most_ranks && p.bytes > 0)
      multiples[p.bytes].push_back(p.measured_s / p.predicted_s);
  std::vector<CollectiveFactor> factors;
  for (auto& [bytes, all] : multiples)
    factors.push_back({static_cast<double>(bytes), quantile(std::move(all), 0.5)});
  return factors;
}

std::string to_table(const std::vector<Prediction>& predictions, int fitted_ranks) {
  std::vector<Line> lines = {
      {"algorithm", "ranks", "bytes", "median us", "least", "99 % below", "predicted us", "error"}};
  std::vector<const Prediction*> fitted, held_out;
  for (const Prediction& p : predictions) {
    (p.ranks <= fitted_ranks ? fitted : held_out).push_back(&p);
    lines.push_back({p.algorithm, fmt::format("{}", p.ranks), fmt::format("{}", p.bytes),
                     fmt::format("{:.1f}", p.measured_s * 1e6),
                     fmt::format("{:.1f}", p.least_s * 1e6), fmt::format("{:.1f}", p.p99_s * 1e6),
                     fmt::format("{:.1f}", p.predicted_s * 1e6),
                     fmt::format("{:+.0f} %", 100 * p.error())});
  }
  std::string text = table(lines) + "\n";
  if (!fitted.empty())
    text += sum_line(fmt::format("up to {} ranks, as were fitted", fitted_ranks), fitted) +
            choice_line(fitted);
  if (!held_out.empty())
    text += sum_line(fmt::format("more than {} ranks, held out", fitted_ranks), held_out) +
            choice_line(held_out);
  return text;
}

std::string to_json(const std::vector<Prediction>& predictions) {
  Json rows = Json::array();
  for (const Prediction& p : predictions)
    rows.push_back({{"algorithm", p.algorithm},
                    {"ranks", p.ranks},
                    {"bytes", p.bytes},
                    {"measured_us", p.measured_s * 1e6},
                    {"min_us", p.least_s * 1e6},
                    {"p99_us", p.p99_s * 1e6},
                    {"predicted_us", p.predicted_s * 1e6},
                    {"error_percent", 100 * p.error()}});
  return rows.dump(1) + "\n";
}

}  // namespace anyccl::cli
