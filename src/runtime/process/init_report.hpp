#pragma once
// A new communicator is described in the log, with ANYCCL_DEBUG=INFO, and to `anyccl info`.

#include <string>
#include <vector>

#include "framework/membership/membership.hpp"
#include "platform/bootstrap/group/placement.hpp"
#include "runtime/process/init_context.hpp"

namespace anyccl {

/// What ANYCCL_DEBUG=INFO tells about a new communicator: by rank 0 the version, the ranks of each
/// host, and the settings; by every rank its transports to each group of peers, and the interfaces
/// where it can be reached.
void report_init(const InitContext& init, const bootstrap::Placement& placement,
                 const Membership& membership);

/// Where this host can be reached.
struct OwnAddress {
  std::string interface, address;
  bool is_loopback = false;
};
/// In the order in which other hosts try them, of the interfaces that ANYCCL_SOCKET_IFNAME names.
std::vector<OwnAddress> own_addresses(const Config& config);

}  // namespace anyccl
