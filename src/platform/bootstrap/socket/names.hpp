#pragma once
// MASTER_ADDR may be the name of a host, and resolve() finds its addresses. Ranks that join by the
// environment call it, and wait in it until their deadline at the longest.

#include <cstdint>
#include <string>
#include <vector>

#include "anyccl/status.hpp"
#include "base/deadline.hpp"
#include "platform/bootstrap/socket/address.hpp"

namespace anyccl::bootstrap {

/// Whether `host` is an address and no name.
bool is_numeric(const std::string& host);

/// The addresses of `host` (a name or a numeric address), with `port`. The system's resolver may
/// take longer than the deadline allows: it goes on in a thread of its own, and nobody waits for
/// it.
/// Errors: invalid_argument naming the host; system_error for a passing problem; timeout.
Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port,
                                     Deadline deadline);

}  // namespace anyccl::bootstrap
