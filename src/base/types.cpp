#include "base/types.hpp"

#include <iterator>

#include "anyccl/anyccl.h"

namespace anyccl {
namespace {

constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2, 1, 8, 16};  // by DType
constexpr std::string_view kOps[] = {"sum", "prod", "max",  "min", "avg", "land",
                                     "lor", "lxor", "band", "bor", "bxor"};  // by ReduceOp

static_assert(std::size(kBytes) == anycclNumTypes && std::size(kOps) == anycclNumOps &&
              std::size(detail::kTypeNames) == anycclNumTypes);
static_assert(static_cast<std::size_t>(kPreMulSum) >= std::size(kOps));
static_assert(static_cast<int>(DType::complex128) == anycclComplexDouble &&
              static_cast<int>(ReduceOp::bxor) == anycclBxor);

}  // namespace

std::size_t bytes_of(DType type) {
  const auto i = static_cast<std::size_t>(type);
  return i < std::size(kBytes) ? kBytes[i] : 0;
}

std::string_view name_of(ReduceOp op) {
  if (op == kPreMulSum) return "premul_sum";
  if (op == kUserOp) return "user";
  return exists(op) ? kOps[static_cast<std::size_t>(op)] : "?";
}

bool exists(ReduceOp op) {
  return static_cast<std::size_t>(op) < std::size(kOps);
}

}  // namespace anyccl
