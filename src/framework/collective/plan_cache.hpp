#pragma once
// A communicator finds the plans of its collectives here. On a miss this chooses algorithm, kernels
// and tiles, and keeps them for the next call with the same arguments.

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "framework/call/check_call.hpp"
#include "framework/call/operators.hpp"
#include "framework/collective/element_types.hpp"
#include "framework/collective/planning_facts.hpp"
#include "framework/collective/recent_calls.hpp"

namespace anyccl {

/// From a call to everything about it that the next call with the same arguments can use again:
/// kernels, algorithm, routed plan, tiles, record, scratch memory. Calls are found by their key; on
/// a hit nothing is allocated or locked.
///
/// Threads: the holder of the communicator's progress lock.
class PlanCache {
 public:
  /// `all`: of every transport; `route[r]` reaches rank r. Everything is borrowed.
  PlanCache(const PlanningFacts& me, std::uint32_t slots, const std::vector<Publications*>& all,
            const std::vector<Publications*>& route)
      : me_(me), slots_(slots), all_(all), route_(route) {}

  /// Whether the arguments make sense; see check_call().
  Status check(const Call& call) const;
  /// The buffers that a call has. Errors: those of its configuration.
  Result<BufferShape> shape_of(const Call& call) const;
  /// Whether check() is known to say yes: the call found last had the same key and these sizes.
  bool is_checked(const Call& call, const CallKey& key) const {
    return key == last_key_ && (call.input != nullptr || last_->bytes.input == 0) &&
           (call.output != nullptr || last_->bytes.output == 0) &&
           (call.in_place(me_.rank) ||
            !overlap(call.input, last_->bytes.given, call.output, last_->bytes.result));
  }

  /// The types of a call whose arguments make sense. Errors: unsupported, see anyccl::types_of().
  Result<ElementTypes> types_of(const Call& call) const;

  /// The prepared form of a call that is right, which is made if it is not known. Errors: what
  /// chooses and builds plans says; unsupported. `parts`: of a fused call; they are in the key.
  Result<std::shared_ptr<const PreparedCall>> find(const Call& call, const CallKey& key,
                                                   FusedParts parts = {});
  /// Prepares a call that will run later: last() stays what it is. The result is what find() would
  /// give as long as generation() is the same.
  Result<std::shared_ptr<const PreparedCall>> plan(const Call& call, const CallKey& key,
                                                   FusedParts parts = {});
  /// The prepared form of a barrier in which ranks compare the call that `data` is of, which goes
  /// some other `way`.
  Result<std::shared_ptr<const PreparedCall>> plan_meeting(const PreparedCall& data,
                                                           std::uint64_t way);
  std::uint64_t generation() const { return generation_; }
  /// The call runs now, by what plan() gave: as find().
  void use(const Call& call, const CallKey& key, const std::shared_ptr<const PreparedCall>& plan);
  /// The prepared form of the call with this key, if it was found last, else null. Valid until
  /// find() is called.
  const PreparedCall* find_last(const CallKey& key) const {
    return key == last_key_ ? last_.get() : nullptr;
  }
  /// The last result of find(); null: nothing yet.
  const std::shared_ptr<const PreparedCall>& last() const { return last_; }
  /// How many of the first calls may travel as one, so that the results have the same bits: what is
  /// reduced is exact, or adds up in the same order either way. They are right, see check().
  std::size_t count_fusible(std::span<const Call* const> calls);
  /// Microseconds that a call that is right should take, by the tuner's model.
  Result<double> predict(const Call& call) const;
  /// Algorithms are chosen anew.
  void forget();

  /// Those that the program has created.
  Operators& operators() { return operators_; }
  /// The configurations of calls.
  CallSettingsTable& settings() { return settings_; }

 private:
  struct Known {
    Rank root;  // 0 where none has one
    bool in_place;
    std::unique_ptr<RoutedPlan> plan;
  };
  bool should_send_input(const Call& call, const ElementTypes& types, const Choice& choice) const;
  Result<Choice> choose_for(const Call& given, std::size_t known, ElementTypes& types,
                            const PreparedCall& prepared) const;
  bool sums_at_once(const Call& call, const Algorithm& algorithm) const;
  DType choose_conversions(const Call& call, const ElementTypes& types,
                           PreparedCall& prepared) const;
  bool divides_in_steps(const Call& call, const Algorithm& algorithm) const;
  void choose_division(const Call& call, PreparedCall& prepared) const;
  Result<DivideFn> division_kernel(const Call& call) const;
  Status choose_kernels(const Call& call, PreparedCall& prepared) const;
  Order need_of(const Call& call) const;
  TunerQuery query_of(const Call& call, std::size_t known_bytes) const;
  Result<Choice> choose_algorithm(const Call& call, std::size_t known_bytes,
                                  Order least = Order::position) const;
  Result<const RoutedPlan*> routed_plan(const Algorithm& algorithm, const Call& call,
                                        bool in_place);
  void choose_lines(const Protocols& allowed, PreparedCall& prepared) const;
  void choose_tiling(const Call& call, std::size_t wanted_tile_bytes, PreparedCall& prepared) const;
  void fill_record(const Call& call, std::uint64_t known_sizes, FusedParts parts,
                   const ElementTypes& types, PreparedCall& prepared) const;
  void plan_scratch(bool needs_landing, PreparedCall& prepared) const;
  Result<std::shared_ptr<const PreparedCall>> prepare(const Call& given, FusedParts parts);
  void report(const Call& call, const Choice& choice, const PreparedCall& prepared);
  bool is_canonical(const Call& call);
  bool keeps_bits(std::span<const Call* const> calls);

  const PlanningFacts& me_;
  const std::uint32_t slots_;
  const std::vector<Publications*>&all_, &route_;
  Operators operators_;  // any thread
  CallSettingsTable settings_;
  std::vector<Known> routed_plans_;
  RecentCalls recent_;
  std::uint64_t generation_ = 1;
  CallKey last_key_;  // of last_, if it can be used again
  std::shared_ptr<const PreparedCall> last_;
  std::array<std::uint64_t, 32> reported_{};  // by collective: a bit per power of two of the size
};

}  // namespace anyccl
