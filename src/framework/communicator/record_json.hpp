#pragma once

#include <nlohmann/json.hpp>

#include "framework/call/recorder.hpp"
#include "framework/communicator/membership.hpp"

namespace anyccl {

/// Who writes, and when: what dumps and traces begin with.
nlohmann::ordered_json writer_json(const Membership& me);
/// One operation, with its times as CLOCK_MONOTONIC shows them.
nlohmann::ordered_json record_json(std::uint64_t number, const RecordedCall& call,
                                   const TickClock::Scale& scale);

}  // namespace anyccl
