#include "draw/movement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "algorithm/verify/simulate.hpp"
#include "base/error.hpp"

namespace anyccl::cli {
namespace {

std::string counted(std::int64_t number, std::string_view word) {
  return fmt::format("{} {}{}", number, word, number == 1 ? "" : "s");
}

Status check_shape(const Algorithm& algorithm, const Shape& shape) {
  if (shape.size < 1 || shape.size > kMostDrawnRanks)
    return error(Code::invalid_argument, "{} cannot be drawn, only 1 to {}",
                 counted(shape.size, "rank"), kMostDrawnRanks);
  if (index(shape.root) < 0 || index(shape.root) >= shape.size)
    return error(Code::invalid_argument, "rank {} cannot be the root of {}", index(shape.root),
                 counted(shape.size, "rank"));
  if (!algorithm.supports(shape))
    return error(Code::invalid_argument, "{} does not support {}{}", id(algorithm),
                 counted(shape.size, "rank"), shape.host_of.empty() ? "" : " on these hosts");
  return {};
}

bool reads_a_peer(const PlanStep& step) {
  return step.tick != 0;
}

/// "recv_reduce_copy_send": the parts of it that a step does, in their order.
std::string name_of(const PlanStep& step) {
  const auto has = [&](PlanStep::Flag flag) { return (step.flags & flag) != 0; };
  std::vector<std::string_view> words;
  if (reads_a_peer(step)) words.emplace_back("recv");
  if (has(PlanStep::combine)) words.emplace_back("reduce");
  if (has(PlanStep::publish) && has(PlanStep::store)) words.emplace_back("copy");
  if (has(PlanStep::publish)) words.emplace_back("send");
  return fmt::format("{}", fmt::join(words, "_"));
}

class Tracing {
 public:
  Tracing(const std::vector<Plan>& plans, Movement& movement) : plans_(plans), to_(movement) {}

  /// Runs the plans on symbols, and fills the movement.
  Status run() {
    std::uint32_t slots = 1;  // with one for each publication no rank waits
    for (std::uint32_t p : plans_[0].publications) slots = std::max(slots, p);
    const verify::Operation once{&plans_};
    ANYCCL_TRY(outcome_, verify::simulate({&once, 1}, {.slots = slots, .trace = true}, terms_));
    to_.cost = {outcome_.rounds, outcome_.sent,
                plans_[0].schedule.contract.chunks(to_.shape.root, Space::input),
                outcome_.roundings};
    for (const Plan& plan : plans_) take_memory(plan.schedule);
    for (std::size_t r = 0; r < plans_.size(); ++r) take_actions(r);
    take_messages();
    return {};
  }

 private:
  std::vector<Chunk> chunks(const std::vector<verify::TermId>& values) const {
    std::vector<Chunk> all;
    all.reserve(values.size());
    for (verify::TermId id : values) all.push_back({terms_[id].origin, terms_[id].ranks});
    return all;
  }

  void take_memory(const Schedule& s) {
    std::vector<Chunk> input;
    for (std::uint32_t c = 0; c < s.chunks(Space::input); ++c) {
      input.push_back({s.origin(Space::input, c)});
      input.back().ranks.set(uindex(s.rank));
    }
    to_.before.push_back(std::move(input));
    to_.after.push_back(chunks(outcome_.output[uindex(s.rank)]));
  }

  void take_actions(std::size_t rank) {
    const std::vector<PlanStep>& steps = plans_[rank].steps;
    action_of_.emplace_back(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const verify::Trace::Step& traced = outcome_.trace.steps[rank][i];
      if (!reads_a_peer(steps[i]) && traced.sums.empty()) continue;
      action_of_[rank][i] = to_.actions.size();
      to_.actions.push_back(
          {Rank(static_cast<int>(rank)), traced.round, name_of(steps[i]), chunks(traced.sums)});
    }
  }

  /// Call it after take_actions() of all ranks.
  void take_messages() {
    // A rank reads what another one sends in the order of sending.
    std::map<std::pair<std::size_t, std::size_t>, std::uint32_t> read;
    for (const verify::Trace::Message& m : outcome_.trace.messages)
      to_.messages.push_back({Rank(static_cast<int>(m.from)), Rank(static_cast<int>(m.to)),
                              m.sent_in, action_of_[m.to][m.read_by], chunks(m.values),
                              read[{m.from, m.to}]++});
    std::stable_sort(to_.messages.begin(), to_.messages.end(),
                     [](const Message& a, const Message& b) {
                       return std::tie(a.round, a.from, a.to) < std::tie(b.round, b.from, b.to);
                     });
  }

  const std::vector<Plan>& plans_;
  Movement& to_;
  verify::Terms terms_;
  verify::Outcome outcome_;
  std::vector<std::vector<std::size_t>> action_of_;  // [rank][plan step]
};

}  // namespace

Result<Movement> movement_of(const Algorithm& algorithm, const Shape& shape) {
  ANYCCL_CHECK(check_shape(algorithm, shape));
  const std::vector<Schedule> ranks = build_all(algorithm, shape);
  ANYCCL_TRY(const std::vector<Plan> plans, lower_all(ranks, 1));
  Movement movement{shape, id(algorithm), {}, ranks[0].contract.combine()};
  ANYCCL_CHECK(Tracing(plans, movement).run());
  return movement;
}

std::string title(const Movement& m) {
  std::string text = fmt::format("{}, {}", m.algorithm, counted(m.shape.size, "rank"));
  if (is_rooted(m.shape.collective)) text += fmt::format(", root {}", index(m.shape.root));
  return text;
}

std::string caption_of(const Movement& m) {
  const bool signals = m.combine == Combine::gathers;
  std::string text = fmt::format("{}; the busiest rank sends {}", counted(m.cost.rounds, "round"),
                                 counted(m.cost.sent, signals ? "signal" : "chunk"));
  if (!signals)
    text += fmt::format(", {:.2f} times its input", static_cast<double>(m.cost.sent) / m.cost.of);
  if (m.combine == Combine::sum) text += "; " + counted(m.cost.roundings, "rounding");
  return text;
}

std::string contributors(const Chunk& chunk) {
  std::vector<std::size_t> ranks;
  for (std::size_t r = 0; r < chunk.ranks.size(); ++r)
    if (chunk.ranks.test(r)) ranks.push_back(r);
  return fmt::format("{}", fmt::join(ranks, "+"));
}

}  // namespace anyccl::cli
