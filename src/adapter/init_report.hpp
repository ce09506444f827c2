#pragma once

#include <string>
#include <vector>

#include "adapter/init_context.hpp"
#include "framework/communicator/membership.hpp"
#include "platform/bootstrap/placement.hpp"

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
