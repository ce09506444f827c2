#include "platform/bootstrap/rendezvous/environment.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"
#include "platform/bootstrap/rendezvous/root_server.hpp"
#include "platform/bootstrap/socket/interfaces.hpp"
#include "platform/bootstrap/socket/names.hpp"

namespace anyccl::bootstrap {
namespace {

constexpr std::string_view kAdvice =
    "is rank 0 running on MASTER_ADDR, with the same MASTER_PORT or ANYCCL_PORT, and the port "
    "open?";

/// A variable that a launcher sets, and that this configuration does not have.
Status missing_error(const Config& config, std::string_view name) {
  for (const auto& [other, why] : config.unreadable)
    if (name.starts_with(other))
      return error(
          why.code(),
          "{}; launchers such as `anyccl run` and torchrun set it, and here something else "
          "has: unset it, or start the program with a launcher",
          why.message());
  return error(
      Code::invalid_usage,
      "{} is not set: start the program with `anyccl run` or torchrun, which set it, or set it "
      "yourself",
      name);
}

/// A variable that ranks on several hosts need if another launcher has started them.
Status missing_for(const Launch& launch, std::string_view name, std::string_view meaning) {
  return error(Code::invalid_usage,
               "{} is not set, and {} has started ranks on several hosts: {} ({})", name,
               launch.by->name, meaning, launch.by->passes_variable);
}

Result<std::uint16_t> port_of(const Config& config) {
  if (config.port != 0) return static_cast<std::uint16_t>(config.port);
  if (!config.master_port) return missing_error(config, "MASTER_PORT (or ANYCCL_PORT)");
  if (*config.master_port == 65535)
    return error(Code::invalid_argument,
                 "MASTER_PORT=65535 leaves no port above it: set ANYCCL_PORT");
  return static_cast<std::uint16_t>(*config.master_port + 1);
}

/// A passing failure of the name service is tried again: pods and their names start together.
Result<std::vector<Address>> resolve_master(const Config& config, std::uint16_t port,
                                            Deadline deadline) {
  for (;;) {
    Result<std::vector<Address>> addresses = resolve(config.master_addr, port, deadline);
    if (addresses.ok()) return addresses;
    if (addresses.status().code() != Code::system_error || deadline.passed())
      return error(addresses.status().code(), "MASTER_ADDR: {}", addresses.status().message());
    ::poll(nullptr, 0, deadline.poll_ms(250));
  }
}

Result<bool> any_local(const std::vector<Address>& addresses) {
  for (const Address& address : addresses) {
    ANYCCL_TRY(const bool local, is_local(address));
    if (local) return true;
  }
  return false;
}

/// Same-user rendezvous on this host. The name can be guessed, so each side asks the kernel who the
/// other is. Errors: invalid_usage if none of `addresses` is of this host.
Result<RendezvousAddress> local_rendezvous(const Config& config,
                                           const std::vector<Address>& addresses,
                                           std::uint16_t port) {
  ANYCCL_TRY(const bool local, any_local(addresses));
  if (!local)
    return error(Code::invalid_usage,
                 "MASTER_ADDR={} is another host and ANYCCL_SECRET is not set: ranks on different "
                 "hosts need "
                 "the same 32 hex digits in it, which `anyccl run` sets; with another launcher set "
                 "it yourself",
                 config.master_addr);
  RendezvousAddress rendezvous;
  const std::string place = fmt::format("{}:{}", config.master_addr, port);
  ANYCCL_TRY(const Secret name, Secret().derive("place", std::as_bytes(std::span(place))));
  rendezvous.endpoints = {{fmt::format("anyccl.{}.{}.{}", ::geteuid(), port, name.hex()), {}}};
  rendezvous.trust = Trust::same_user;
  rendezvous.advice = kAdvice;
  return rendezvous;
}

Result<RendezvousAddress> rendezvous_of(const Config& config, Deadline deadline) {
  if (config.master_addr.empty()) return missing_error(config, "MASTER_ADDR");
  ANYCCL_TRY(const std::uint16_t port, port_of(config));
  ANYCCL_TRY(const std::vector<Address> addresses, resolve_master(config, port, deadline));
  if (config.secret.empty()) return local_rendezvous(config, addresses, port);
  RendezvousAddress rendezvous;
  ANYCCL_TRY(const OwnNetwork own, OwnNetwork::find());
  rendezvous.endpoints = own.endpoints_to(addresses);
  if (rendezvous.endpoints.empty())
    return error(Code::invalid_argument,
                 "MASTER_ADDR={} is link-local, and no interface of this host has such an address",
                 config.master_addr);
  ANYCCL_TRY(rendezvous.secret, Secret::parse(config.secret));
  rendezvous.advice = kAdvice;
  return rendezvous;
}

/// Where the ranks meet that another launcher has started on this host. Its job has a name already.
Result<RendezvousAddress> rendezvous_of_launch(const Launch& launch) {
  RendezvousAddress rendezvous;
  ANYCCL_TRY(const Secret name, Secret().derive("job", std::as_bytes(std::span(launch.job))));
  rendezvous.endpoints = {{fmt::format("anyccl.{}.job.{}", ::geteuid(), name.hex()), {}}};
  rendezvous.trust = Trust::same_user;
  rendezvous.advice = "is rank 0 running?";
  return rendezvous;
}

/// Adds rank 0's host and port from another launcher's variables, for ranks on several hosts.
/// Errors: invalid_usage if something is missing, also the secret, or if rank 0 finds that it is
/// not on the launcher's first host.
Result<Config> complete_config(Config config, const Launch& launch, Deadline deadline) {
  if (config.secret.empty())
    return missing_for(launch, "ANYCCL_SECRET",
                       "they need the same 32 hex digits in it, which `anyccl secret` prints");
  const bool found = config.master_addr.empty();
  if (found) config.master_addr = launch.first_host;
  if (config.master_addr.empty())
    return missing_for(launch, "MASTER_ADDR", "set it to the address of rank 0's host");
  if (config.port == 0 && !config.master_port && !launch.first_host.empty())
    config.port = port_of_job(launch);
  if (config.port == 0 && !config.master_port && !config.unreadable.empty())
    return missing_error(config, "MASTER_PORT");
  if (config.port == 0 && !config.master_port)
    return missing_for(launch, "MASTER_PORT",
                       "set it to a free port P of rank 0's host, where P + 1 is free, too");
  if (!found || launch.rank != 0) return config;
  ANYCCL_TRY(const std::vector<Address> addresses, resolve(config.master_addr, 1, deadline));
  ANYCCL_TRY(const bool here, any_local(addresses));
  if (!here)
    return error(Code::invalid_usage,
                 "rank 0 is not on {}, the first host of {}: set MASTER_ADDR to rank 0's host ({})",
                 config.master_addr, launch.by->host_list, launch.by->passes_variable);
  return config;
}

Status cannot_listen(const Status& why) {
  const bool in_use = why.code() == Code::invalid_usage;
  return error(
      why.code(), "rank 0 cannot listen for the other ranks: {}{}", why.message(),
      in_use ? "; is another job with the same MASTER_PORT or ANYCCL_PORT running? Choose another "
               "port"
             : "");
}

std::vector<Endpoint> at_port(std::uint16_t port, const Address& v4, const Address& v6) {
  return {{"", with_port(v4, port)}, {"", with_port(v6, port)}};
}

/// Where rank 0 listens: at MASTER_ADDR's addresses, or at all of this host's if none of them leads
/// here from elsewhere: a service or NAT may stand before it, or this host's name means its
/// loopback here.
Result<std::vector<Endpoint>> endpoints_to_listen(const Config& config,
                                                  RendezvousAddress& rendezvous) {
  std::vector<Endpoint> local;
  bool only_loopback = true;
  for (const Endpoint& endpoint : rendezvous.endpoints) {
    ANYCCL_TRY(const bool here, is_local(endpoint.address));
    if (!here) continue;
    local.push_back(endpoint);
    only_loopback = only_loopback && is_loopback(endpoint.address);
  }
  const bool wants_loopback = config.master_addr == "localhost" || is_numeric(config.master_addr);
  const std::uint16_t port = rendezvous.endpoints.front().address.port;
  if (!local.empty() && (!only_loopback || wants_loopback)) {
    rendezvous.endpoints = local;
    return local;
  }
  rendezvous.endpoints = at_port(port, {4, 0, 0, {127, 0, 0, 1}}, {6, 0, 0, kLoopback6});
  return at_port(port, {4, 0, 0, {}}, {6, 0, 0, {}});
}

/// Opens rank 0's listening sockets and leaves in `rendezvous` how rank 0 itself reaches them.
Result<std::vector<UniqueFd>> open_listeners(const Config& config, RendezvousAddress& rendezvous) {
  std::vector<UniqueFd> listeners;
  if (rendezvous.trust == Trust::same_user) {
    Result<UniqueFd> listener = listen_unix(rendezvous.endpoints.front().unix_name);
    if (!listener.ok()) return cannot_listen(listener.status());
    listeners.push_back(*std::move(listener));
    return listeners;
  }
  ANYCCL_TRY(const std::vector<Endpoint> endpoints, endpoints_to_listen(config, rendezvous));
  Status problem;
  for (const Endpoint& endpoint : endpoints) {
    Result<TcpListener> listener = listen_tcp(endpoint.address);
    if (listener.ok()) {
      listeners.push_back(std::move(listener->socket));
      continue;
    }
    problem = listener.status();
    if (problem.code() == Code::invalid_usage) return cannot_listen(problem);
  }
  if (listeners.empty()) return cannot_listen(problem);
  return listeners;
}

/// Only one of RANK and WORLD_SIZE is set: it means what the launcher says, or is left from
/// something else.
Status check_agreement(std::string_view name, const std::optional<int>& value, const Launch& launch,
                       std::string_view other_name, int other_value) {
  if (!value || *value == other_value) return {};
  return error(Code::invalid_argument,
               "{}={} contradicts {}={}, which {} has set: unset {}, or set both RANK and "
               "WORLD_SIZE",
               name, *value, other_name, other_value, launch.by->name, name);
}

/// The place of the root server is `taken`. If another process has it as rank 0 of this job, both
/// are told so. Returns the cause.
Status why_taken(const RendezvousAddress& rendezvous, const Hello& mine, Deadline deadline,
                 const Listeners* listeners, const Status& taken) {
  constexpr std::chrono::seconds kTimeToAsk{1};
  const Deadline soon = std::min(deadline, Deadline::in(kTimeToAsk));
  const Status answer = join_at(rendezvous, mine, soon, listeners).status();
  return answer.code() == Code::invalid_usage ? answer : taken;
}

Result<Group> group_of_one(const Hello& mine) {
  ANYCCL_TRY(const Secret secret, Secret::random());
  return Group{{mine}, secret};
}

}  // namespace

Result<LaunchInfo> read_launch_info(const Config& config) {
  if (!config.rank || !config.world_size) {
    ANYCCL_TRY(const std::optional<Launch> launch, find_launch(config));
    if (launch) {
      ANYCCL_CHECK(check_agreement("RANK", config.rank, *launch, launch->by->rank, launch->rank));
      ANYCCL_CHECK(check_agreement("WORLD_SIZE", config.world_size, *launch, launch->by->size,
                                   launch->size));
      return LaunchInfo{Rank{launch->rank}, launch->size, launch};
    }
  }
  if (!config.rank) return missing_error(config, "RANK");
  if (!config.world_size) return missing_error(config, "WORLD_SIZE");
  if (*config.rank >= *config.world_size)
    return error(Code::invalid_argument,
                 "RANK={} is not in a group of WORLD_SIZE={} ranks: they are 0 to {}", *config.rank,
                 *config.world_size, *config.world_size - 1);
  return LaunchInfo{Rank{*config.rank}, *config.world_size};
}

Result<Group> join_environment(const Config& given, const Hello& mine, Deadline deadline,
                               const std::optional<Launch>& launch, const Listeners* listeners) {
  if (mine.size == 1) return group_of_one(mine);
  const bool by_launcher = launch && launch->one_host && given.master_addr.empty();
  Config config = given;
  if (launch && !launch->one_host) {
    ANYCCL_TRY(config, complete_config(given, *launch, deadline));
  }
  ANYCCL_TRY(RendezvousAddress rendezvous,
             by_launcher ? rendezvous_of_launch(*launch) : rendezvous_of(config, deadline));
  if (mine.rank != 0) return join_at(rendezvous, mine, deadline, listeners);
  Result<std::vector<UniqueFd>> sockets = open_listeners(config, rendezvous);
  if (sockets.status().code() == Code::invalid_usage)
    return why_taken(rendezvous, mine, deadline, listeners, sockets.status());
  ANYCCL_CHECK(sockets.status());
  // Its end waits until the others have their answer too.
  ANYCCL_TRY(const auto server,
             RootServer::start(*std::move(sockets), rendezvous.secret, rendezvous.trust));
  Result<Group> group = join_at(rendezvous, mine, deadline, listeners);
  if (!group.ok() && group.status().code() != Code::timeout) server->stop_when_told();
  return group;
}

}  // namespace anyccl::bootstrap
