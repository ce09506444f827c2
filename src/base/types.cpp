#include "base/types.hpp"

#include <iterator>

#include "anyccl/anyccl.h"

namespace anyccl {
namespace {

struct TypeInfo {
  std::string_view name;
  std::size_t bytes;
};
constexpr TypeInfo kTypes[] = {  // by DType
    {"i8", 1},  {"u8", 1},  {"i32", 4},  {"u32", 4},       {"i64", 8},        {"u64", 8},
    {"f16", 2}, {"f32", 4}, {"f64", 8},  {"bf16", 2},      {"f8e4m3", 1},     {"f8e5m2", 1},
    {"i16", 2}, {"u16", 2}, {"bool", 1}, {"complex64", 8}, {"complex128", 16}};
constexpr std::string_view kOps[] = {"sum", "prod", "max",  "min", "avg", "land",
                                     "lor", "lxor", "band", "bor", "bxor"};  // by ReduceOp

static_assert(std::size(kTypes) == anycclNumTypes && std::size(kOps) == anycclNumOps);
static_assert(static_cast<std::size_t>(kPreMulSum) >= std::size(kOps));
static_assert(static_cast<int>(DType::complex128) == anycclComplexDouble &&
              static_cast<int>(ReduceOp::bxor) == anycclBxor);

}  // namespace

std::size_t bytes_of(DType type) {
  const auto i = static_cast<std::size_t>(type);
  return i < std::size(kTypes) ? kTypes[i].bytes : 0;
}

std::string_view name_of(DType type) {
  const auto i = static_cast<std::size_t>(type);
  return i < std::size(kTypes) ? kTypes[i].name : "?";
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
