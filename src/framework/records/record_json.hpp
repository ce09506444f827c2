#pragma once
// Dumps, traces and metrics use these functions, so that an operation has the same name and fields
// in all of them.

#include <nlohmann/json.hpp>

#include "framework/call/recorder.hpp"
#include "framework/membership/membership.hpp"

namespace anyccl {

/// Who writes, and when: what dumps and traces begin with.
nlohmann::ordered_json writer_json(const Membership& me, std::int64_t time_ns);
/// "all_reduce", "send", "put". `other`: if it is not `none`, that is what it is.
std::string_view name_of(Collective collective, OtherKind other);
/// One operation, with its times as CLOCK_MONOTONIC shows them.
nlohmann::ordered_json record_json(std::uint64_t number, const RecordedCall& call,
                                   const TickClock::Scale& scale);

}  // namespace anyccl
