#include "framework/call.hpp"

#include <fmt/format.h>

#include "algorithm/schedule/contract.hpp"

namespace anyccl {

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
