#pragma once

#include "framework/collective/routed_plan.hpp"

namespace anyccl::cli {

/// What a step moves, in bytes.
struct Moved {
  double user_read = 0, user_write = 0;        ///< Input and output.
  double scratch_read = 0, scratch_write = 0;  ///< Small, and so in caches.
  double ring_read = 0, ring_write = 0;        ///< Rings of this rank and of others.
  double line_read = 0, line_write = 0;        ///< In slots.
  int reads = 0, publications = 0;
  Moved& operator+=(const Moved& other);
};

/// A step of a plan with sizes, as the library's Execution runs it.
class StepMoves {
 public:
  /// `line_bytes`: publications of up to so many are in a slot. All outlive it.
  StepMoves(const Plan& plan, const BoundPlan& bound, std::uint32_t step, std::uint32_t line_bytes)
      : plan_(plan),
        bound_(bound),
        step_(plan.steps[step]),
        at_(bound.steps[step]),
        line_bytes_(line_bytes) {}

  /// It publishes own memory as it is.
  bool is_send() const {
    return (step_.flags & (PlanStep::combine | PlanStep::store | PlanStep::publish)) ==
           PlanStep::publish;
  }
  /// Each operand goes to its place as it arrives.
  bool streams() const { return (step_.flags & (PlanStep::combine | PlanStep::publish)) == 0; }

  Moved of_operand(std::uint32_t operand) const;
  Moved of_all() const;
  bool is_of_peer(std::uint32_t operand) const {
    return plan_.refs[step_.first_ref + operand].rank != uindex(plan_.schedule.rank);
  }

 private:
  void add_read(std::uint32_t operand, double bytes, Moved& moved) const;
  void add_write(double bytes, Moved& moved) const;

  const Plan& plan_;
  const BoundPlan& bound_;
  const PlanStep& step_;
  const BoundStep& at_;
  const std::uint32_t line_bytes_;
};

}  // namespace anyccl::cli
