#include "launch/hosts.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "base/error.hpp"
#include "launch/order.hpp"
#include "launch/own_command.hpp"
#include "launch/rendezvous.hpp"
#include "launch/signals.hpp"
#include "launch/supervisor.hpp"

namespace anyccl::cli {
namespace {

struct NameAndNumber {
  std::string name;
  std::optional<int> number;
};

/// "NAME", "NAME:NUMBER", "[NAME]:NUMBER"; a name with more than one colon is an IPv6 address.
std::optional<NameAndNumber> name_and_number(std::string_view text, int most) {
  std::string_view name = text, digits;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    name = text.substr(1, end - 1);
    digits = text.substr(end + 1);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    name = text.substr(0, text.find(':'));
    digits = text.substr(name.size());
  }
  if (name.empty()) return std::nullopt;
  if (digits.empty()) return NameAndNumber{std::string(name), std::nullopt};
  int number = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, problem] = std::from_chars(digits.data() + 1, last, number);
  const bool good = digits[0] == ':' && problem == std::errc{} && end == last;
  if (!good || number < 1 || number > most) return std::nullopt;
  return NameAndNumber{std::string(name), number};
}

std::string own_host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string without_user(const std::string& host) {
  return host.substr(host.find('@') == std::string::npos ? 0 : host.find('@') + 1);
}

/// Names have no case, and may end with a dot; localhost is this one. A user before an @ does not
/// count.
bool is_same_host(const std::string& a, const std::string& b) {
  const auto plain = [](const std::string& host) {
    std::string name = without_user(host);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (name.ends_with('.')) name.pop_back();
    return name;
  };
  const std::string own = plain(own_host_name());
  const auto known = [&](const std::string& host) {
    const std::string name = plain(host);
    return name == "localhost" ? own : name;
  };
  return known(a) == known(b);
}

/// The hosts of --hosts. Errors: invalid_argument for a word that is no host, a host that is there
/// twice, and an empty list.
Result<std::vector<NameAndNumber>> split_list(std::string_view list) {
  constexpr int kMostRanks = 65536;
  std::vector<NameAndNumber> hosts;
  for (std::size_t at = 0; !list.empty() && at <= list.size();) {
    const std::string_view word = list.substr(at, list.find(',', at) - at);
    at += word.size() + 1;
    const auto host = name_and_number(word, kMostRanks);
    // ssh would take it for an option.
    if (!host || host->name.starts_with('-'))
      return error(
          Code::invalid_argument,
          "--hosts: '{}' is no host: write NAME or NAME:RANKS, and [ADDRESS]:RANKS for IPv6", word);
    for (const NameAndNumber& other : hosts)
      if (is_same_host(other.name, host->name))
        return error(Code::invalid_argument, "--hosts: {} is there twice{}: write {}:2", host->name,
                     other.name == host->name ? "" : fmt::format(", also as {}", other.name),
                     other.name);
    hosts.push_back(*host);
  }
  if (hosts.empty()) return error(Code::invalid_argument, "--hosts: there is no host");
  return hosts;
}

/// As many as fit, from the first host on.
Result<std::vector<HostRanks>> fill_hosts(const std::vector<NameAndNumber>& hosts,
                                          std::optional<int> ranks) {
  int room = 0;
  for (const NameAndNumber& host : hosts) room += host.number.value_or(1);
  int left = ranks.value_or(room);
  if (left > room)
    return error(Code::invalid_argument, "--ranks {}: --hosts has room for {}", left, room);
  std::vector<HostRanks> filled;
  for (const NameAndNumber& host : hosts) {
    const int here = std::min(left, host.number.value_or(1));
    if (here > 0) filled.push_back({host.name, here});
    left -= here;
  }
  return filled;
}

Result<std::vector<HostRanks>> spread_over_hosts(const std::vector<NameAndNumber>& hosts,
                                                 std::optional<int> ranks) {
  const int count = static_cast<int>(hosts.size());
  if (!ranks)
    return error(Code::invalid_argument, "--hosts: how many ranks? Give --ranks, or numbers: {}:2",
                 hosts.front().name);
  if (*ranks < count)
    return error(Code::invalid_argument, "--ranks {} is less than the {} hosts", *ranks, count);
  std::vector<HostRanks> spread;
  for (int h = 0; h < count; ++h)
    spread.push_back(
        {hosts[static_cast<std::size_t>(h)].name, *ranks / count + (h < *ranks % count ? 1 : 0)});
  return spread;
}

bool is_here(const std::string& host) {
  return host == "localhost" || host == own_host_name();
}

/// Returns the name by which other hosts know the first one: 127.0.0.1 if it is a lone localhost.
std::string master_of(const std::vector<HostRanks>& hosts) {
  const std::string first = without_user(hosts.front().name);
  if (first != "localhost") return first;
  return hosts.size() == 1 ? "127.0.0.1" : own_host_name();
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::vector<std::string> command_for(const HostsJob& job, const std::string& host,
                                     const std::string& tool) {
  if (is_here(host)) return {tool, "run", "--ordered"};
  std::vector<std::string> command = job.ssh;
  command.push_back(host);
  command.push_back("exec " + quoted(tool) + " run --ordered");
  return command;
}

/// The orders for all hosts, and the ports that are kept while the job runs.
Result<std::vector<std::string>> orders_of(const HostsJob& hosts_job, PortPair& ports) {
  Order order{.job = hosts_job.job};
  HostPart& part = order.job.part.emplace();
  std::error_code problem;
  order.folder = std::filesystem::current_path(problem).string();
  order.job.coloured = ::isatty(STDOUT_FILENO) == 1;
  ANYCCL_TRY(part.secret, random_secret());
  const HostPort master =
      hosts_job.master.value_or(HostPort{master_of(hosts_job.hosts), std::nullopt});
  if (!master.port) {
    ANYCCL_TRY(ports, free_port_pair());
  }
  part.master_addr = master.host;
  part.master_port = master.port.value_or(ports.first);
  for (const HostRanks& host : hosts_job.hosts) part.world_size += host.ranks;
  std::vector<std::string> texts;
  for (const HostRanks& host : hosts_job.hosts) {
    order.job.ranks = host.ranks;
    ANYCCL_TRY(std::string text, text_of(order));
    texts.push_back(std::move(text));
    part.first_rank += host.ranks;
  }
  return texts;
}

/// The meaning that a shell or ssh gives an exit code.
void explain_exit_code(const Job& job, int exit_code, const std::string& tool) {
  constexpr int kNotFound = 127, kSshFailed = 255;
  if (exit_code == kSshFailed)
    fmt::print(stderr,
               "{}: exit code 255 may be ssh's own: can the host be reached without a password?\n",
               job.name);
  if (exit_code == kNotFound)
    fmt::print(stderr, "{}: exit code 127: the program, or {}, may not be on that host\n", job.name,
               tool);
}

}  // namespace

Result<std::vector<HostRanks>> parse_hosts(std::string_view list, std::optional<int> ranks) {
  ANYCCL_TRY(const std::vector<NameAndNumber> hosts, split_list(list));
  const bool has_numbers = std::any_of(hosts.begin(), hosts.end(),
                                       [](const NameAndNumber& h) { return h.number.has_value(); });
  return has_numbers ? fill_hosts(hosts, ranks) : spread_over_hosts(hosts, ranks);
}

Result<HostPort> parse_master(std::string_view text) {
  constexpr int kLastPort = 65534;  // anyccl's own port is the next one
  const auto master = name_and_number(text, kLastPort);
  if (!master)
    return error(Code::invalid_argument,
                 "--master {}: write HOST or HOST:PORT, with a port from 1 to {}, and "
                 "[ADDRESS]:PORT for IPv6",
                 text, kLastPort);
  return HostPort{master->name, master->number};
}

int run_on_hosts(const HostsJob& hosts_job) {
  const Job& job = hosts_job.job;
  PortPair ports;
  const Result<std::vector<std::string>> orders = orders_of(hosts_job, ports);
  if (!orders.ok()) return fail(job, orders.status().message());
  const Result<std::string> tool = own_path();
  if (!tool.ok()) return fail(job, tool.status().message());
  Result<SignalQueue> signals = SignalQueue::open();
  if (!signals.ok()) return fail(job, signals.status().message());

  Result<Guard> guard = Guard::start();
  if (!guard.ok()) return fail(job, guard.status().message());

  Supervisor supervisor(job, *signals, *std::move(guard));
  for (std::size_t h = 0; h < hosts_job.hosts.size(); ++h) {
    const std::string& name = hosts_job.hosts[h].name;
    ChildSetup setup{.command = command_for(hosts_job, name, *tool)};
    setup.control = setup.pipe_output = true;
    setup.signal_mask = signals->former_mask();
    setup.guard = &supervisor.guard();
    Child child;
    const StartFailure failure = start_child(setup, child);
    if (!failure.status.ok()) {
      supervisor.kill_all();
      return fail(job, failure.status.message(), failure.exit_code);
    }
    // Fits into the socket's buffer. Where nobody takes it any more, the host's end tells.
    ::send(child.control.get(), (*orders)[h].data(), (*orders)[h].size(), MSG_NOSIGNAL);
    supervisor.add(std::move(child), "host " + name, std::nullopt);
  }
  const int exit_code = supervisor.wait_for_all();
  explain_exit_code(job, exit_code, *tool);
  return exit_code;
}

}  // namespace anyccl::cli
