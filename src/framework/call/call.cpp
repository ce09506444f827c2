#include "framework/call/call.hpp"

#include <fmt/format.h>

#include <limits>

#include "algorithm/schedule/contract.hpp"

namespace anyccl {
namespace {

constexpr std::uint8_t kMostNamed = std::numeric_limits<decltype(CallRecord::parts)>::max();

}  // namespace

KeptCall::KeptCall(const Call& call, Rank me, int size) : call_(call) {
  if (has_equal_blocks(call.collective)) return;
  const bool at_root = call.root == me,
             sends = has_blocks_apart(call.collective, at_root, Space::input),
             receives = has_blocks_apart(call.collective, at_root, Space::output);
  const auto n = static_cast<std::size_t>(size);
  table_.reserve(4 * n);
  const auto keep = [&](const std::size_t*& array, bool used) {
    if (!used) return;
    const std::size_t* const own = table_.data() + table_.size();
    table_.insert(table_.end(), array, array + n);
    array = own;
  };
  keep(call_.send_counts, sends);
  keep(call_.send_displs, sends);
  keep(call_.recv_counts, receives);
  keep(call_.recv_displs, receives);
}

std::string describe(const CallRecord& call) {
  if (call.parts > 0) {
    CallRecord whole = call;
    whole.parts = 0;
    return fmt::format("{}{} calls of a group, together {}",
                       call.parts == kMostNamed ? "at least " : "", call.parts, describe(whole));
  }
  const auto what = static_cast<Collective>(call.collective);
  if (call.collective >= anycclNumCollectives)  // of a peer
    return fmt::format("a collective of number {}", call.collective);
  const std::string_view verb = name(what), type = name_of(static_cast<DType>(call.dtype));
  switch (what) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
    case Collective::scan:
    case Collective::exscan:
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
    case Collective::reduce_scatter_v:
      return fmt::format("{} of {}, {}", verb, type, name_of(static_cast<ReduceOp>(call.op)));
    case Collective::gather_v:
      return fmt::format("{} of {} to rank {}", verb, type, call.root);
    case Collective::scatter_v:
      return fmt::format("{} of {} from rank {}", verb, type, call.root);
    case Collective::all_gather_v:
    case Collective::all_to_all_v:
      return fmt::format("{} of {}", verb, type);
    default:
      return std::string(verb);
  }
}

}  // namespace anyccl
