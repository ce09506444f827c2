#pragma once
// The types of a call, where they are not one: docs/numbers/types.md.

#include "anyccl/status.hpp"
#include "framework/call/call.hpp"
#include "framework/tuning/plan_settings.hpp"

namespace anyccl {

/// The types of the input, of what is added up and travels, and of the result.
struct ElementTypes {
  DType input, sum, output;
  bool are_one() const { return input == sum && sum == output; }
};

/// Those of the call's configuration, or all of its own type; with leaves, see leaves_of_rank(),
/// sums of floats of 16 bits are of f32. `is_created`: its operator is one of the program.
/// Errors: unsupported, naming types, collective or operator that have no meaning together.
Result<ElementTypes> types_of(const Call& call, const CallSettings* settings, bool is_created);

}  // namespace anyccl
