// Rails: device i of each host is on switch i, as in clusters of eight GPUs per host. A message to
// another device of another host first goes inside the host to the device on the receiver's rail.

#include <algorithm>

#include "base/error.hpp"
#include "simulate/networks/kinds.hpp"

namespace anyccl::cli {

Result<Network> make_rails(NetworkParams& params, std::uint32_t ranks) {
  const std::uint32_t devices = params.take_number("devices", 8, 1, 1024);
  const std::uint32_t most = kMostEnds / devices;
  const std::uint32_t hosts =
      params.take_number("hosts", std::clamp((ranks + devices - 1) / devices, 1U, most), 1, most);
  const double inside_gb_per_s = params.take_real("inside", 150);
  ANYCCL_CHECK(params.status());
  NetworkWriter writer(params.kind(), params.text());
  writer.add_level("rank", hosts * devices);
  const std::uint32_t host_switches = writer.add_level("host switch", hosts);
  const std::uint32_t rails = writer.add_level("rail", devices);
  const std::uint32_t inside = writer.add_link_class("inside", inside_gb_per_s * 1e9),
                      rail = writer.add_link_class("rail");
  for (std::uint32_t i = 0; i < hosts * devices; ++i) {
    writer.add_cable(i, host_switches + i / devices, inside);
    writer.add_cable(i, rails + i % devices, rail);
  }
  return std::move(writer).finish(
      [=](std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& nodes) {
        nodes.push_back(from);
        const std::uint32_t host = from / devices, device = to % devices;
        if (host == to / devices) {
          nodes.push_back(host_switches + host);
        } else {
          if (from % devices != device)
            nodes.insert(nodes.end(), {host_switches + host, host * devices + device});
          nodes.push_back(rails + device);
        }
        nodes.push_back(to);
      });
}

}  // namespace anyccl::cli
