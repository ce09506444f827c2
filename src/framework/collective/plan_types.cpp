// What is left to do with results; and calls with several types, see ElementTypes: in which one
// elements travel, and where they are converted.

#include <algorithm>
#include <utility>

#include "algorithm/loaded/loaded_algorithm.hpp"
#include "base/error.hpp"
#include "framework/collective/plan_cache.hpp"
#include "framework/tuning/order_needs.hpp"

namespace anyccl {
namespace {

/// Whether sums are the results, which nobody reads.
bool sums_stay(const Plan& plan) {
  const auto output = static_cast<unsigned>(Space::output);
  return std::all_of(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& step) {
    if ((step.flags & PlanStep::combine) == 0)
      return step.src_space != output && (step.flags & PlanStep::store) == 0;
    return step.flags == (PlanStep::combine | PlanStep::store) && step.src_space != output &&
           step.dst_space == output;
  });
}

/// Whether each rank is on a host of its own.
bool are_apart(const PlanningFacts& facts) {
  if (!facts.network) return false;
  for (std::size_t r = 0; r < facts.near_of.size(); ++r)
    if (facts.near_of[r] != static_cast<int>(r)) return false;
  return true;
}

/// Whether a step that adds up elements of the input does so in the type of the sum, and rounds
/// as the call says.
bool is_in_wide_steps(const ElementTypes& types) {
  return types.output == types.input && tree_for(types.input) == Order::tree_in_one_step;
}

/// Whether results are truth values. Those of bitwise operators are so for bool alone.
bool is_logical(ReduceOp op, DType dtype) {
  return dtype == DType::boolean || op == ReduceOp::land || op == ReduceOp::lor ||
         op == ReduceOp::lxor;
}

/// Whether results at this rank are made of one rank's elements.
bool has_one_source(Collective collective, Rank me, int size) {
  if (collective == Collective::scan) return me == Rank{0};
  if (collective == Collective::exscan) return me == Rank{1};
  return size == 1;
}

}  // namespace

/// What is left to do with a result when all is combined; null: nothing.
Result<DivideFn> PlanCache::division_kernel(const Call& call) const {
  if (call.op == ReduceOp::avg && is_prefix(call.collective))
    return error(Code::unsupported,
                 "{} of {} has no op avg, as each result is of another number of ranks: divide a "
                 "sum by it",
                 name(call.collective), name_of(call.dtype));
  if (call.op == ReduceOp::avg) return divide_kernel(call.dtype);
  if (Operators::is_created(call.op) || !is_logical(call.op, call.dtype)) return DivideFn();
  return has_one_source(call.collective, me_.rank, me_.size) ? truth_kernel(call.dtype)
                                                             : DivideFn();
}

Result<ElementTypes> PlanCache::types_of(const Call& call) const {
  return anyccl::types_of(call, settings_.at(call.settings), operators_.find(call.op) != nullptr);
}

/// Whether elements of the input should travel, though the sum is wider and `choice` would send
/// that: a rank that gets all blocks of its result at once adds them up in one step. That has fewer
/// bytes, and a few ranks can send to one at once. Users and measurements come first.
bool PlanCache::should_send_input(const Call& call, const ElementTypes& types,
                                  const Choice& choice) const {
  constexpr int kFewRanks = 16;
  const CallSettings* const settings = settings_.at(call.settings);
  const bool is_asked_for = choice.table != nullptr ||
                            (settings != nullptr && settings->algorithms.names(call.collective));
  return call.collective == Collective::reduce_scatter && me_.size <= kFewRanks && are_apart(me_) &&
         !is_asked_for && (types.sum == types.output || is_in_wide_steps(types));
}

/// An algorithm for `known` elements, and by it, in which type they are added up.
Result<Choice> PlanCache::choose_for(const Call& given, std::size_t known, ElementTypes& types,
                                     const PreparedCall& prepared) const {
  Call call = given;
  call.dtype = types.sum;
  const std::size_t bytes = known * bytes_of(call.dtype);
  const bool may_send_input = types.sum != types.input && !prepared.input.folds();
  Result<Choice> choice = choose_algorithm(call, bytes);
  if (choice.ok() && may_send_input && should_send_input(given, types, *choice))
    if (const auto direct = choose_algorithm(call, bytes, Order::tree_in_one_step); direct.ok())
      choice = direct;
  if (choice.ok() && may_send_input && is_in_wide_steps(types) &&
      sums_at_once(given, *choice->algorithm) &&
      (given.op != ReduceOp::avg || divides_in_steps(given, *choice->algorithm)))
    types.sum = types.input;
  // Else a sum of bf16 would be rounded, divided, and rounded once more.
  if (choice.ok() && given.op == ReduceOp::avg && has_equal_blocks(given.collective) &&
      types.are_one() && is_in_wide_steps(types) && sums_at_once(given, *choice->algorithm) &&
      !divides_in_steps(given, *choice->algorithm))
    types.sum = DType::f32;
  return choice;
}

/// Whether it rounds each result once, and has no sum but that.
bool PlanCache::sums_at_once(const Call& call, const Algorithm& algorithm) const {
  return me_.size > 1 && meets(algorithm, query_of(call, 0).shape, Order::tree_in_one_step);
}

/// Whether the step that makes a result of an average divides it. A loaded algorithm may have steps
/// that only copy.
bool PlanCache::divides_in_steps(const Call& call, const Algorithm& algorithm) const {
  return call.op == ReduceOp::avg && algorithm.loaded == nullptr && sums_at_once(call, algorithm);
}

/// How elements come from one type into another. Returns the type of those that the plan moves.
DType PlanCache::choose_conversions(const Call& call, const ElementTypes& types,
                                    PreparedCall& prepared) const {
  Folding& folding = prepared.input.folding;
  folding.kernel = prepared.kernel;
  folding.given_bytes = bytes_of(types.input);
  folding.bytes = bytes_of(types.sum);
  if (types.are_one()) return types.sum;
  const RoutedPlan& routed = *prepared.routed;
  const bool widens =
      types.sum != types.input && types.sum == types.output && !prepared.input.folds();
  // All ranks have to come to the same: of the catalog, plans of ranks are alike.
  if (widens && routed.algorithm->loaded == nullptr && sums_at_once(call, *routed.algorithm) &&
      sums_stay(routed.plan)) {
    prepared.portions.widen = converter(types.input, types.sum);
    prepared.portions.growth = bytes_of(types.sum) / bytes_of(types.input);
    prepared.portions.element = bytes_of(types.input);
    prepared.portions.kernel = prepared.kernel;
    return types.input;
  }
  if (types.sum != types.input)
    prepared.input.convert = folding.widen = converter(types.input, types.sum);
  if (types.output != types.sum) prepared.result.convert = converter(types.sum, types.output);
  return types.sum;
}

/// Where each result is made in one step, that divides, too. Small types are rounded only then, as
/// the sum may be larger than their largest number.
void PlanCache::choose_division(const Call& call, PreparedCall& prepared) const {
  const Algorithm& algorithm = *prepared.routed->algorithm;
  prepared.result.divisor = static_cast<std::uint32_t>(me_.size) * prepared.input.folding.leaves;
  if (!divides_in_steps(call, algorithm)) return;
  Portions& portions = prepared.portions;
  if (portions.widen == nullptr && tree_for(call.dtype) == Order::tree_in_one_step) {
    portions.widen = converter(call.dtype, DType::f32);
    portions.narrow = converter(DType::f32, call.dtype);
    portions.growth = bytes_of(DType::f32) / bytes_of(call.dtype);
    prepared.kernel = *reduce_kernel(DType::f32, ReduceOp::sum);
    prepared.result.divide = *divide_kernel(DType::f32);
  }
  portions.element = bytes_of(call.dtype);
  portions.kernel = prepared.kernel;
  portions.divide = std::exchange(prepared.result.divide, nullptr);
  portions.divisor = prepared.result.divisor;
}

}  // namespace anyccl
