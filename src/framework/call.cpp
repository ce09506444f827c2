#include "framework/call.hpp"

#include <fmt/format.h>

#include "algorithm/schedule/contract.hpp"

namespace anyccl {
namespace {

struct TypeInfo {
  std::string_view name;
  std::size_t bytes;
};
constexpr TypeInfo kTypes[] = {  // by DType
    {"i8", 1},  {"u8", 1},  {"i32", 4}, {"u32", 4},  {"i64", 8},    {"u64", 8},
    {"f16", 2}, {"f32", 4}, {"f64", 8}, {"bf16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1}};
constexpr std::string_view kOps[] = {"sum", "prod", "max", "min", "avg"};  // by ReduceOp

template <typename T, std::size_t N, typename E>
const T* find(const T (&table)[N], E entry) {
  const auto i = static_cast<std::size_t>(entry);
  return i < N ? &table[i] : nullptr;
}
template <std::size_t N, typename E>
std::string_view text(const std::string_view (&table)[N], E entry) {
  const std::string_view* name = find(table, entry);
  return name == nullptr ? std::string_view("?") : *name;
}

}  // namespace

std::size_t bytes_of(DType type) {
  const TypeInfo* info = find(kTypes, type);
  return info == nullptr ? 0 : info->bytes;
}
std::string_view name_of(DType type) {
  const TypeInfo* info = find(kTypes, type);
  return info == nullptr ? std::string_view("?") : info->name;
}
std::string_view name_of(ReduceOp op) {
  return text(kOps, op);
}

std::string describe(const CallRecord& call) {
  const auto what = static_cast<Collective>(call.collective);
  const std::string_view verb = name(what), type = name_of(static_cast<DType>(call.dtype));
  switch (what) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
      return fmt::format("{} of {} {}, {}", verb, call.count, type,
                         name_of(static_cast<ReduceOp>(call.op)));
    case Collective::reduce:
      return fmt::format("{} of {} {}, {}, to rank {}", verb, call.count, type,
                         name_of(static_cast<ReduceOp>(call.op)), call.root);
    case Collective::broadcast:
    case Collective::scatter:
      return fmt::format("{} of {} {} from rank {}", verb, call.count, type, call.root);
    case Collective::gather:
      return fmt::format("{} of {} {} to rank {}", verb, call.count, type, call.root);
    case Collective::all_gather:
    case Collective::all_to_all:
      return fmt::format("{} of {} {}", verb, call.count, type);
    case Collective::all_to_all_v:
      return fmt::format("{} of {}", verb, type);
    default:
      return std::string(verb);
  }
}

}  // namespace anyccl
