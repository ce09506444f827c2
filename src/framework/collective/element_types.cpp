#include "framework/collective/element_types.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "platform/reduce/convert.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl {
namespace {

// In words of every interface; C has the names in brackets, in a call's configuration.
constexpr std::string_view kOutput = "the type of the result (outputType)",
                           kAccumulate = "the type of the sum (accumulateType)", kLeaves = "leaves";

bool is_wider(DType a, DType b) {
  return bytes_of(a) > bytes_of(b);
}

bool is_float(DType dtype) {
  return dtype >= DType::f16 && dtype <= DType::f8e5m2;
}

/// "f32" or "i16, i32, i64": what elements of this type can be added up in.
std::string wider_than(DType dtype) {
  std::string names;
  for (std::size_t to = 0; to < kDTypes; ++to)
    if (const auto type = static_cast<DType>(to);
        is_wider(type, dtype) && converter(dtype, type) != nullptr)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(type));
  return names.empty() ? "none" : names;
}

bool is_configurable(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

/// A type whose sums are not rounded where the leaves of a rank end.
DType sum_of_leaves(DType leaf) {
  return leaf == DType::f16 || leaf == DType::bf16 ? DType::f32 : leaf;
}

/// Whether a sum may be too large for the type of an average. That of bf16 is so only where that of
/// f32 is.
bool is_average_of_few_exponents(const Call& call) {
  return call.op == ReduceOp::avg && is_configurable(call.collective) &&
         (call.dtype == DType::f16 || call.dtype == DType::f8e4m3 || call.dtype == DType::f8e5m2);
}

Status no_meaning_error(std::string_view setting, DType type, DType input) {
  return error(Code::unsupported, "{} is {} and the call is of {}: besides this there {} {}",
               setting, name_of(type), name_of(input), wider_than(input) == "none" ? "is" : "are",
               wider_than(input));
}

}  // namespace

Result<ElementTypes> types_of(const Call& call, const CallSettings* settings, bool is_created) {
  ElementTypes types{call.dtype, call.dtype, call.dtype};
  if (is_average_of_few_exponents(call)) types.sum = DType::f32;
  if (settings == nullptr) return types;
  const bool has_leaves = settings->leaves > 0;
  if (!settings->output && !settings->accumulate && !has_leaves) return types;
  const std::string_view setting = settings->output       ? kOutput
                                   : settings->accumulate ? kAccumulate
                                                          : kLeaves;
  if (!is_configurable(call.collective))
    return error(Code::unsupported,
                 "{} is for all_reduce, reduce and reduce_scatter, and this is a {}", setting,
                 name(call.collective));
  if (is_created)
    return error(Code::unsupported, "{} is not for operators that a program has created", setting);
  types.output = settings->output.value_or(types.input);
  types.sum = settings->accumulate.value_or(is_wider(types.output, types.input) ? types.output
                                            : has_leaves ? sum_of_leaves(types.input)
                                                         : types.sum);
  if (has_leaves && is_float(types.sum) && bytes_of(types.sum) < bytes_of(DType::f32))
    return error(Code::unsupported,
                 "{} is for sums that are rounded once, and {} is added up as {}, which is "
                 "rounded where a rank ends",
                 kLeaves, name_of(types.input), name_of(types.sum));
  if (types.sum != types.input &&
      (!is_wider(types.sum, types.input) || converter(types.input, types.sum) == nullptr))
    return no_meaning_error(settings->accumulate ? kAccumulate : kOutput, types.sum, types.input);
  const bool rounds = is_float(types.sum) && is_float(types.output);
  if (types.output != types.sum && (!(rounds || is_wider(types.output, types.sum)) ||
                                    converter(types.sum, types.output) == nullptr))
    return error(Code::unsupported, "{} is {}, and sums of {} are no such elements", kOutput,
                 name_of(types.output), name_of(types.sum));
  return types;
}

}  // namespace anyccl
