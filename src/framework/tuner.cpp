#include "framework/tuner.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kKiB = 1024;

int hosts(const Shape& shape) {
  return shape.host_of.empty()
             ? 1
             : static_cast<int>(std::set<int>(shape.host_of.begin(), shape.host_of.end()).size());
}

/// The measured crossings; where a network is in between, fewer rounds matter longer.
std::string_view best_all_reduce(const Question& q) {
  const int n = q.shape.size;
  if (hosts(q.shape) > 1 && hosts(q.shape) < n) return "two_level";
  const std::size_t one_shot_to = q.network ? 4 * kKiB
                                  : n == 2  ? 16 * kKiB
                                  : n <= 4  ? 4 * kKiB
                                            : 2 * kKiB;
  return q.bytes <= one_shot_to ? "one_shot" : "two_shot";
}

std::string_view best(const Question& q) {
  switch (q.shape.collective) {
    case Collective::all_reduce:
      return best_all_reduce(q);
    case Collective::broadcast:
      return q.shape.size <= 4 || (!q.network && q.bytes <= 8 * kKiB) ? "flat" : "pipelined_tree";
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
      return q.network && q.bytes > 64 * kKiB ? "ring" : "direct";
    case Collective::all_gather:
    case Collective::all_gather_v:
      if (q.network) return q.bytes > 64 * kKiB ? "ring" : "bruck";
      return "direct";
    case Collective::reduce:
      return q.network && q.shape.size > 4 ? "binomial" : "flat";
    case Collective::gather:
    case Collective::gather_v:
    case Collective::scatter:
    case Collective::scatter_v:
      return "flat";
    case Collective::all_to_all:
      return q.network && q.bytes > 64 * kKiB ? "pairwise" : "direct";
    case Collective::all_to_all_v:
      return "direct";
    case Collective::barrier:
      return "dissemination";
    default:
      return "";
  }
}

std::size_t tile_bytes(const Question& q) {
  if (q.shape.collective != Collective::all_reduce && q.shape.collective != Collective::reduce)
    return 64 * kKiB;  // of each block
  return q.network ? 256 * kKiB
                   : std::size_t{128} * kKiB *
                         static_cast<std::size_t>(std::max(2, std::min(q.shape.size, 8)));
}

}  // namespace

Result<Choice> choose(const Question& q, const std::string& forced) {
  Choice choice{nullptr, tile_bytes(q)};
  if (!forced.empty()) choice.algorithm = find_algorithm(q.shape.collective, forced);
  const bool by_user = choice.algorithm != nullptr;
  if (!by_user) choice.algorithm = find_algorithm(q.shape.collective, best(q));
  if (choice.algorithm == nullptr)
    return error(Code::internal, "no algorithm for {}", name(q.shape.collective));
  if (!choice.algorithm->supports(q.shape))
    return error(Code::unsupported, "{} does not support {} ranks{}", id(*choice.algorithm),
                 q.shape.size, by_user ? " (ANYCCL_ALGO)" : "");
  return choice;
}

Status check_algorithm_name(const std::string& name) {
  if (name.empty()) return {};
  std::string known;
  for (const Algorithm* a : all_algorithms()) {
    if (a->name == name) return {};
    known += fmt::format("{}{}", known.empty() ? "" : ", ", a->name);
  }
  return error(Code::invalid_argument, "ANYCCL_ALGO={} is not an algorithm; there are {}", name,
               known);
}

}  // namespace anyccl
