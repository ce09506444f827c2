#include "framework/tuning/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "algorithm/catalog/levels.hpp"
#include "algorithm/loaded/loaded_algorithm.hpp"
#include "algorithm/verify/check.hpp"
#include "base/error.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kKiB = 1024;

/// Whether there are so many ranks, and no groups by host, that a call should not go from each to
/// all others: that takes too many messages and, where ranks connect on demand, connections.
bool is_sparse(const TunerQuery& q) {
  constexpr int kMostAtOnce = 32;
  return q.network && q.shape.size > kMostAtOnce && !has_groups(q.shape);
}

struct Rule {
  std::string_view name, reason;
};
constexpr std::string_view kMeasured = "built in: measured crossings",
                           kRuleOfThumb = "built in: a rule of thumb";

/// Whether all_reduce was measured with so many ranks: on 2 cores, and over a network with 2 ranks.
bool measured_all_reduce(const TunerQuery& q) {
  const int n = q.shape.size;
  if (q.network) return n == 2;
  return n == 2 || ((n == 4 || n == 8) && q.ranks_per_core > 1);
}

/// Ranks per core from which the rules below were measured: 12 to 32 ranks on 2 cores.
constexpr int kOversubscribed = 4;

/// Inside a host. Where cores are oversubscribed, what counts is how often ranks wait for each
/// other and, later, how much there is to do in all.
Rule best_all_reduce_of_many(const TunerQuery& q) {
  const int n = q.shape.size;
  if (q.ranks_per_core >= kOversubscribed)
    return {q.bytes <= 2 * kKiB               ? "one_shot"
            : q.bytes <= 128 * kKiB || n > 16 ? "reduce_broadcast"
                                              : "two_shot",
            n == 12 || n == 16 || n == 32 ? kMeasured : kRuleOfThumb};
  if (q.bytes <= kKiB / 2) return {"recursive_multiplying", kRuleOfThumb};
  return {has_groups(q.shape) ? "two_level" : "two_shot", kRuleOfThumb};
}

/// Over a network a round costs more than anything else as long as messages are short, and two
/// ranks move the same bytes in one round as in two.
Rule best_all_reduce_over_network(const TunerQuery& q) {
  const std::string_view reason = measured_all_reduce(q) ? kMeasured : kRuleOfThumb;
  if (const std::size_t groups = count_groups(q.shape); groups > 1)
    return {(groups - 1) * q.bytes <= 64 * kKiB ? "single_leader" : "two_level", reason};
  if (is_sparse(q)) return {q.bytes <= 16 * kKiB ? "recursive_doubling" : "circulant", reason};
  const bool meet = q.shape.size == 2 || q.bytes <= 4 * kKiB;
  return {meet ? "one_shot" : "two_shot", reason};
}

Rule best_all_reduce(const TunerQuery& q) {
  const int n = q.shape.size, many = q.ranks_per_core >= kOversubscribed ? 9 : 17;
  if (q.network) return best_all_reduce_over_network(q);
  if (n >= many) return best_all_reduce_of_many(q);
  const std::size_t one_shot_to = n == 2 ? 16 * kKiB : n <= 4 ? 4 * kKiB : 2 * kKiB;
  return {q.bytes <= one_shot_to ? "one_shot" : "two_shot",
          measured_all_reduce(q) ? kMeasured : kRuleOfThumb};
}

/// Returns kMeasured for barriers of 2 to 16 ranks and broadcasts of 8, as they were measured on 2
/// cores (docs/adr/0024), else kRuleOfThumb.
std::string_view measured_meeting(const TunerQuery& q) {
  const int n = q.shape.size;
  const bool on_two_cores = !q.network && (n == 2 || q.ranks_per_core > 1);
  const bool ranks = q.shape.collective == Collective::barrier
                         ? n == 2 || n == 4 || n == 8 || n == 16
                         : n == 8 && q.bytes >= 16 * kKiB && q.bytes <= 1024 * kKiB;
  return on_two_cores && ranks ? kMeasured : kRuleOfThumb;
}

/// Whether it has an algorithm that crosses to each host once, and some host has several ranks.
bool crosses_once(const TunerQuery& q) {
  switch (q.shape.collective) {
    case Collective::broadcast:
    case Collective::all_gather:
    case Collective::all_gather_v:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
      return q.network && has_groups(q.shape);
    default:
      return false;
  }
}

Rule best(const TunerQuery& q) {
  const bool large = q.bytes > 64 * kKiB, sparse = is_sparse(q);
  // Ranks of one host that are few, or that wait for a core anyway: then fewer rounds are faster.
  const bool meet = !q.network && (q.shape.size <= 8 || q.ranks_per_core > 1);
  if (crosses_once(q)) return {"two_level", kRuleOfThumb};
  switch (q.shape.collective) {
    case Collective::all_reduce:
      return best_all_reduce(q);
    case Collective::broadcast:
      return {meet || q.shape.size <= 4 || (!q.network && q.bytes <= 8 * kKiB) ? "flat"
                                                                               : "pipelined_tree",
              measured_meeting(q)};
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
      return {q.network && large ? "ring" : sparse ? "circulant" : "direct", kRuleOfThumb};
    case Collective::all_gather:
    case Collective::all_gather_v:
      return {!q.network ? "direct" : large ? "ring" : "bruck", kRuleOfThumb};
    case Collective::reduce:
      return {q.network && q.shape.size > 4 ? "binomial" : "flat", kRuleOfThumb};
    case Collective::scan:
    case Collective::exscan:
      return {large ? "pipelined_chain" : meet ? "one_shot" : "recursive_doubling", kRuleOfThumb};
    case Collective::gather:
    case Collective::scatter:
      return {sparse && !large ? "binomial" : "flat", kRuleOfThumb};
    case Collective::gather_v:
    case Collective::scatter_v:
      return {"flat", kRuleOfThumb};
    case Collective::all_to_all:
      return {q.network && large ? "pairwise" : sparse ? "bruck" : "direct", kRuleOfThumb};
    case Collective::all_to_all_v:
      return {"direct", "the only one"};
    case Collective::barrier:
      return {meet ? "one_shot" : "dissemination", measured_meeting(q)};
    default:
      return {};
  }
}

/// The settings of users, the strongest first.
using Layers = std::vector<const PlanSettings*>;

Layers layers_of(const TunerPolicy& policy, const CallSettings* call) {
  Layers layers{&policy.environment};
  if (call != nullptr) layers.push_back(call);
  layers.push_back(&policy.communicator);
  return layers;
}

bool excludes(const Layers& layers, const Algorithm& algorithm, std::size_t bytes) {
  return std::any_of(layers.begin(), layers.end(), [&](const PlanSettings* one) {
    return one->algorithms.excludes(algorithm, bytes);
  });
}

bool is_possible(const Algorithm& algorithm, const TunerQuery& q) {
  return algorithm.collective == q.shape.collective && algorithm.supports(q.shape) &&
         meets(algorithm, q.shape, q.need);
}

/// The choice of the table: the fastest, or `usual` unless that is clearly slower. Null: the table
/// has not two to compare.
const Algorithm* best_measured(const TunerQuery& q, const TunerTable& table, const Layers& layers,
                               const Algorithm* usual) {
  const Algorithm* best = nullptr;
  double least = 0;
  int measured = 0;
  for (const Algorithm* a : all_algorithms()) {
    const auto time = table.measured_us(*a, q);
    if (!time || !is_possible(*a, q) || excludes(layers, *a, q.bytes)) continue;
    ++measured;
    if (best == nullptr || *time < least) best = a, least = *time;
  }
  if (measured < 2) return nullptr;
  const auto as_usual = usual == nullptr ? std::nullopt : table.measured_us(*usual, q);
  return as_usual && *as_usual < kClearGain * least ? usual : best;
}

/// The one of the catalog that should be fastest, of those that are possible and not excluded;
/// null: there is none.
const Algorithm* best_predicted(const TunerQuery& q, const Layers& layers) {
  const Algorithm* best = nullptr;
  double least = 0;
  for (const Algorithm* a : all_algorithms()) {
    if (a->loaded != nullptr || !is_possible(*a, q) || excludes(layers, *a, q.bytes)) continue;
    const bool counts = a->cost != nullptr || uindex(Rank{q.shape.size}) <= verify::kMaxRanks;
    const double predicted = counts ? predict_us(*a, q) : std::numeric_limits<double>::infinity();
    if (best == nullptr || predicted < least) best = a, least = predicted;
  }
  return best;
}

/// Where the built-in choice is not the tree; the model knows nothing of ranks that share a
/// network.
const Algorithm* best_tree(const TunerQuery& q, const Layers& layers) {
  const std::size_t groups = count_groups(q.shape);
  if (q.network && groups > 1 && q.shape.collective == Collective::all_reduce) {
    const bool small = (groups - 1) * q.bytes <= 64 * kKiB;
    const Algorithm& usual =
        *find_algorithm(Collective::all_reduce, small ? "tree_doubling" : "tree_two_level");
    if (is_possible(usual, q) && !excludes(layers, usual, q.bytes)) return &usual;
  }
  return best_predicted(q, layers);
}

/// Returns what the tables choose, or else what is built in; no algorithm if all are excluded.
Choice choose_without_user(const TunerQuery& q, const TunerPolicy& policy, const Layers& layers) {
  const auto [name, reason] = best(q);
  Choice choice{find_algorithm(q.shape.collective, name), 0, reason};
  const bool excluded = choice.algorithm != nullptr && excludes(layers, *choice.algorithm, q.bytes);
  if (excluded)
    choice = {best_predicted(q, layers), 0,
              "a rule excludes the built-in choice: the one that should be next"};
  else if (choice.algorithm != nullptr && !meets(*choice.algorithm, q.shape, q.need))
    choice = {
        best_tree(q, layers), 0,
        "the level of reproducibility needs the aligned tree: of those that have it, the one that "
        "should be fastest"};
  for (const auto& table : policy.tables) {
    const Algorithm* const measured = best_measured(q, *table, layers, choice.algorithm);
    if (measured == nullptr) continue;
    choice.table = table.get();
    if (measured != choice.algorithm) choice.rule = {};
    choice.algorithm = measured;
    break;
  }
  return choice;
}

Status cannot_error(const Algorithm& algorithm, const TunerQuery& q, std::string_view setting) {
  return error(Code::unsupported, "{} does not support {} ranks{}{} ({})", id(algorithm),
               q.shape.size, algorithm.needs.empty() ? "" : ": it needs ", algorithm.needs,
               setting);
}

Status no_tree_error(const Algorithm& algorithm, const TunerQuery& q, std::string_view setting) {
  std::vector<std::string_view> those;
  for (const Algorithm* a : all_algorithms())
    if (is_possible(*a, q)) those.push_back(a->name);
  return error(Code::unsupported,
               "{} ({}) does not add up by the aligned tree{}, which the level of reproducibility "
               "(ANYCCL_REPRODUCIBLE) needs from 2 on; {} {}",
               id(algorithm), setting,
               q.need == Order::tree_in_one_step ? " with one rounding" : "",
               those.empty() ? "none does for" : "those that do for",
               fmt::format("these {} ranks: {}", q.shape.size, fmt::join(those, ", ")));
}

/// What a user names for this query, if it can be done; else by tables and what is built in.
Result<Choice> choose_by_layers(const TunerQuery& q, const TunerPolicy& policy,
                                const Layers& layers) {
  Layers above;
  for (const PlanSettings* one : layers) {
    const AlgorithmRules& rules = one->algorithms;
    const Algorithm* const wanted =
        rules.wanted(q, [&](const Algorithm& found) { return excludes(above, found, q.bytes); });
    if (wanted != nullptr) {
      if (!wanted->supports(q.shape)) return cannot_error(*wanted, q, rules.setting());
      if (!meets(*wanted, q.shape, q.need)) {
        // One that is wrong has no order at all.
        if (wanted->loaded != nullptr) ANYCCL_CHECK(wanted->loaded->check(q.shape, ~0U));
        return no_tree_error(*wanted, q, rules.setting());
      }
      return Choice{wanted, 0, rules.setting()};
    }
    above.push_back(one);
  }
  Choice choice = choose_without_user(q, policy, layers);
  if (choice.algorithm != nullptr) return choice;
  std::vector<std::string_view> settings;
  for (const PlanSettings* one : layers)
    if (one->algorithms.names(q.shape.collective)) settings.push_back(one->algorithms.setting());
  return error(Code::unsupported, "{} leaves no algorithm for {} of {} ranks",
               fmt::join(settings, " and "), name(q.shape.collective), q.shape.size);
}

Result<ProtocolChoice> protocols_by(const Layers& layers, const TunerQuery& q) {
  std::vector<const ProtocolRules*> rules;
  for (const PlanSettings* one : layers) rules.push_back(&one->protocols);
  return choose_protocols(q.shape.collective, q.bytes, rules);
}

std::size_t tile_by(const Layers& layers, const TunerQuery& q) {
  const std::size_t usual = usual_tile(q);
  for (const PlanSettings* one : layers)
    if (one->chunk_bytes > 0) return std::min(usual, one->chunk_bytes);
  return usual;
}

Result<Choice> select_by(const TunerQuery& q, const TunerPolicy& policy, const Layers& layers) {
  const bool measures =
      policy.measured != nullptr && policy.measured->collective == q.shape.collective;
  Choice choice{policy.measured, 0, "being measured"};
  if (!measures) {
    ANYCCL_TRY(choice, choose_by_layers(q, policy, layers));
  }
  choice.tile_bytes = tile_by(layers, q);
  ANYCCL_TRY(choice.protocols, protocols_by(layers, q));
  if (choice.algorithm->supports(q.shape)) return choice;
  return cannot_error(*choice.algorithm, q, choice.rule);
}

Cost cost_of(const Algorithm& algorithm, const Shape& shape) {
  if (algorithm.cost != nullptr) return algorithm.cost(shape);
  verify::Terms terms;
  const std::vector<Schedule> ranks = build_all(algorithm, shape);
  const Result<verify::Outcome> counted = verify::check(ranks, terms, false);
  if (!counted.ok()) return {};
  return {counted->rounds, counted->sent, ranks[0].contract.chunks(shape.root, Space::input),
          counted->roundings};
}

/// Measured with 8 B and 1 MiB AllReduces of two ranks on a virtual machine (see
/// docs/performance.md): us per round, us per byte.
struct Speed {
  double alpha, beta;
};
constexpr Speed kInsideHost{0.17, 5.0e-5}, kNetwork{6.5, 2.4e-4};

}  // namespace

std::size_t usual_tile(const TunerQuery& q) {
  const auto is = [&](Collective c) { return q.shape.collective == c; };
  // While one rank reads a tile, another writes the next, and is up to 16 tiles ahead: measured,
  // docs/adr/0075.
  const bool is_one_way = (is(Collective::reduce) && q.shape.size <= 4) ||
                          (is(Collective::broadcast) && q.shape.size == 2);
  if (!q.network && is_one_way) return q.bytes <= 512 * kKiB ? 32 * kKiB : 64 * kKiB;
  if (is(Collective::all_reduce) || is(Collective::reduce))
    return q.network ? 256 * kKiB
                     : std::size_t{128} * kKiB *
                           static_cast<std::size_t>(std::max(2, std::min(q.shape.size, 8)));
  // Each block has tiles of its own. Where ranks pass them on, larger ones come later.
  const bool is_direct = is(Collective::all_gather) || is(Collective::all_to_all) ||
                         (is(Collective::broadcast) && q.shape.size == 2);
  return q.network && is_direct ? 256 * kKiB : 64 * kKiB;
}

Result<Choice> select_algorithm(const TunerQuery& q, const TunerPolicy& policy,
                                const CallSettings* call) {
  if (call != nullptr && call->forced && call->algorithms.misses(q.shape.collective))
    return error(Code::unsupported, "{} names no algorithm of {}", call->algorithms.setting(),
                 name(q.shape.collective));
  Result<Choice> choice = select_by(q, policy, layers_of(policy, call));
  if (choice.ok() || call == nullptr || call->forced) return choice;
  return select_by(q, policy, layers_of(policy, nullptr));
}

int level_of(const TunerPolicy& policy, const CallSettings* call) {
  const int both = std::max(policy.environment.level, policy.communicator.level);
  return std::max({kLevelOfRuns, both, call == nullptr ? 0 : call->level});
}

std::string_view excluded_by(const Algorithm& algorithm, const TunerQuery& q,
                             const TunerPolicy& policy) {
  for (const PlanSettings* one : layers_of(policy, nullptr))
    if (one->algorithms.excludes(algorithm, q.bytes)) return one->algorithms.setting();
  return {};
}

std::string reason(const Choice& choice) {
  if (choice.table == nullptr) return std::string(choice.rule);
  if (choice.rule.empty()) return "fastest in " + choice.table->name();
  return fmt::format("{}, and {} has nothing clearly faster", choice.rule, choice.table->name());
}

namespace {

double predict(const Algorithm& algorithm, const Cost& cost, const TunerQuery& q) {
  const Speed speed = q.network ? kNetwork : kInsideHost;
  const std::uint32_t blocks = std::max(
      1U, blocks_held(algorithm.collective, q.shape.size, true, Space::input));  // that `of` counts
  const double sent = static_cast<double>(q.bytes) * blocks * cost.sent / std::max(1U, cost.of);
  return speed.alpha * cost.rounds + speed.beta * sent;
}

}  // namespace

double predict_us(const Algorithm& algorithm, const TunerQuery& q) {
  return predict(algorithm, cost_of(algorithm, q.shape), q);
}

double predict_message(std::size_t bytes, bool network) {
  const Speed speed = network ? kNetwork : kInsideHost;
  return speed.alpha + speed.beta * static_cast<double>(bytes);
}

std::vector<Candidate> candidates(const TunerQuery& q, const TunerTable* table) {
  std::vector<Candidate> all;
  for (const Algorithm* a : all_algorithms()) {
    if (a->collective != q.shape.collective) continue;
    Candidate& c = all.emplace_back(Candidate{a, a->supports(q.shape)});
    if (!c.possible) continue;
    c.cost = cost_of(*a, q.shape);
    c.predicted_us = predict(*a, c.cost, q);
    if (table != nullptr) c.measured_us = table->measured_us(*a, q);
  }
  return all;
}

}  // namespace anyccl
