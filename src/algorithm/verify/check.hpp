#pragma once
// The checks prove algorithms right: their schedules, plans, promised costs and orders. `anyccl
// check` and the conformance tests run them, and communicators do for each loaded algorithm.

#include <cstdint>
#include <span>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "algorithm/verify/simulate.hpp"

namespace anyccl::verify {

/// Slices, peers and sizes are legal, and steps that touch one cell, one of them writing, are
/// ordered. Errors: internal, naming rank, step and chunk.
Status check_structure(const Schedule& schedule);

/// Whether peers see the same of both: messages, their order, peers and chunks. Two builds of one
/// rank that differ only in Shape::in_place must agree. Errors: internal, naming rank and step.
Status check_same_messages(const Schedule& a, const Schedule& b);

/// Everything about the schedules of all ranks, as their author wrote them: structure; then on the
/// symbolic machine over rendezvous, with the fewest slots that do not deadlock, and, if
/// `thorough`, with three tiles in flight; and that all ranks get the same bits. Returns the
/// outcome over rendezvous. Errors: internal, naming rank, step and chunk; unsupported for more
/// than kMaxRanks ranks.
Result<Outcome> check(const std::vector<Schedule>& ranks, Terms& terms, bool thorough = true);

/// Everything about what they are lowered to: the terms are those of the schedules (`expected`),
/// and operations follow each other safely in few slots whoever lends. Returns the fewest slots.
Result<std::uint32_t> check_plans(const std::vector<Schedule>& ranks, const Outcome& expected,
                                  Terms& terms, bool thorough = true);

/// The result of check_algorithm().
struct CheckReport {
  struct Size {
    int size = 0;
    Cost cost = {};           ///< As counted, root 0; up to 17 ranks everyone out of place.
    std::uint32_t slots = 0;  ///< The fewest per bank with which every plan of this size runs.
    /// The weakest that was found, of all roots and host maps; of a collective that sums.
    Order order = Order::tree_in_one_step;
  };
  std::vector<Size> sizes = {};
  std::uint32_t shapes = 0;  ///< How many were checked: sizes, roots, in place, host maps.
  double seconds = 0;
};

/// Checks schedules and plans of an algorithm for first_n..last_n ranks: roots, in place on no, all
/// and some ranks, even, uneven and scattered hosts (where they matter), its promised cost and
/// order. Above 17 ranks in place on some alone, at few roots, without tiles in flight. Errors: as
/// check(), with the shape in front; invalid_argument for sizes that make no sense.
Result<CheckReport> check_algorithm(const Algorithm& algorithm, int first_n, int last_n);

/// Checks an algorithm as check_algorithm() does, for shapes that it supports, each rank in place
/// and out of place. Errors: also unsupported for more than kMaxRanks ranks.
Result<CheckReport> check_shapes(const Algorithm& algorithm, std::span<const Shape> shapes);

}  // namespace anyccl::verify
