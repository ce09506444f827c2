#include "runtime/process/init_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/log.hpp"
#include "platform/bootstrap/socket/address.hpp"
#include "platform/bootstrap/socket/interfaces.hpp"

namespace anyccl {
namespace {

/// "0-3, 8"
std::string range_text(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
}

/// Returns the ANYCCL_ variables that are set, even to a default, as "NAME=value", without the
/// secret.
std::vector<std::string> changed_settings() {
  std::vector<std::string> set;
  for (const Variable& variable : variables())
    if (const auto value = value_now(variable.name);
        value && variable.name.starts_with("ANYCCL_") && variable.name != "ANYCCL_SECRET")
      set.push_back(fmt::format("{}={}", variable.name, *value));
  return set;
}

void report_ranks(const std::string& name, const std::vector<int>& host_of, const Membership& m) {
  std::map<int, std::vector<int>> of_host;
  for (int r = 0; r < m.size; ++r) of_host[host_of[uindex(Rank{r})]].push_back(r);
  log(LogSubsystem::init, "anyccl {}: communicator{} of {} rank{} on {} host{}",
      ANYCCL_VERSION_TEXT, name.empty() ? "" : " " + name, m.size, m.size == 1 ? "" : "s",
      of_host.size(), of_host.size() == 1 ? "" : "s");
  for (const auto& [host, ranks] : of_host)
    log(LogSubsystem::init, "host of {}: ranks {}", m.names[uindex(Rank{ranks[0]})],
        range_text(ranks));
  if (m.ranks_per_core > 1)
    log(LogSubsystem::init, "{} ranks share a core: those that wait give theirs away",
        m.ranks_per_core);
  if (const auto set = changed_settings(); !set.empty())
    log(LogSubsystem::init, "set: {}", fmt::join(set, " "));
}

}  // namespace

void report_init(const InitContext& init, const bootstrap::Placement& placement,
                 const Membership& m) {
  if (!log_enabled(LogLevel::info)) return;
  if (m.rank == Rank{0}) report_ranks(init.name, placement.host_of, m);
  for (const auto& transport : m.transports) {
    std::vector<int> peers;
    for (const Rank peer : transport->peers()) peers.push_back(index(peer));
    std::sort(peers.begin(), peers.end());
    log(LogSubsystem::init, "rank {} of {}: {} to rank{} {}{}", index(m.rank), m.size,
        transport->name(), peers.size() == 1 ? "" : "s", range_text(peers),
        init.config.transport.empty() ? "" : " (ANYCCL_TRANSPORT)");
  }
  if (!m.network) return;
  std::vector<std::string> addresses;
  for (const bootstrap::Address& address : bootstrap::addresses_of(init.hello))
    addresses.push_back(bootstrap::to_string(address));
  log(LogSubsystem::net, "rank {} of {}: listens at {}{}", index(m.rank), m.size,
      fmt::join(addresses, ", "),
      init.config.interface.empty()
          ? ""
          : fmt::format(" (ANYCCL_SOCKET_IFNAME={})", init.config.interface));
}

std::vector<OwnAddress> own_addresses(const Config& config) {
  std::vector<OwnAddress> own;
  const auto all = bootstrap::addresses_by_interface(config.interface);
  if (!all.ok()) return own;
  for (const auto& [interface, address] : *all) {
    const std::string text = bootstrap::to_string(address);
    own.push_back({interface, text.substr(0, text.rfind(':')), bootstrap::is_loopback(address)});
  }
  return own;
}

}  // namespace anyccl
