#pragma once

#include "platform/bootstrap/listeners.hpp"
#include "platform/bootstrap/receiver.hpp"
#include "platform/bootstrap/source.hpp"
#include "platform/bootstrap/uplink.hpp"

namespace anyccl::bootstrap {

/// Joins a large group as the rank in `mine`, and for the ranks that call at `host` (none: no rank does): brings
/// the root server their hellos, and them the answer. So it does for the leaders of other hosts that the
/// server sends to `listeners` (null: none). Returns when all of them have the answer, a failure included, or
/// after a moment. Errors: as join(); the waiting ranks hear of it, too.
Result<FinalReply> lead(const RendezvousAddress& rendezvous, const Attendance& attendance,
                        const Listeners* listeners, UniqueFd host);

}  // namespace anyccl::bootstrap
