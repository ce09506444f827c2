#pragma once
// PlanCache describes a call by this query. The tuner, its rules and its tables choose by it.

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/status.hpp"
#include "framework/tuning/order_needs.hpp"

namespace anyccl {

/// The facts on which the choice of an algorithm depends; equal on all ranks of a communicator.
struct TunerQuery {
  Shape shape;             ///< in_place is ignored: ranks may differ in it.
  std::size_t bytes = 0;   ///< The vector's or block's, on average; 0 where no rank knows it.
  bool network = false;    ///< Some pair of ranks talks over a network.
  int ranks_per_core = 1;  ///< At least.
  Order need = Order::position;
};

}  // namespace anyccl
