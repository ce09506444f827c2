#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/launchers.hpp"
#include "launch/hosts.hpp"
#include "launch/job.hpp"
#include "launch/order.hpp"
#include "launch/rendezvous.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

constexpr int kLastPort = 65534;   // anyccl's own port is the next one.
constexpr int kUsualPort = 29500;  // as torchrun has it
constexpr int kMostProcesses = 65536;
constexpr int kMostNodes = 4096;
constexpr const char* kName = "anyccl run";

struct Options {
  std::string ranks_text = {};
  std::vector<int> ranks = {};  ///< What that says.
  std::optional<int> port = {};
  bool keep_going = false, no_prefix = false, ordered = false;
  int grace = static_cast<int>(Job().user_grace.count());
  std::optional<int> nodes;  ///< None: one, and this is all of the job.
  std::optional<int> node_rank = {};
  std::string master = {}, secret_file = {}, hosts = {};
  std::string ssh = "ssh -x -T -o BatchMode=yes -o ServerAliveInterval=10";
  std::vector<std::string> exports = {};
};

void add_flags(CLI::App& app, Options& o) {
  app.add_option("-n,--ranks", o.ranks_text,
                 "Number of ranks (processes) to start; with --nnodes: on each node, or one number "
                 "per node: 3,1,2");
  app.add_option("--port", o.port,
                 fmt::format("MASTER_PORT, unless --master has one; default: a free port P where "
                             "P + 1 is free, with --nnodes {}",
                             kUsualPort))
      ->check(CLI::Range(1, kLastPort));
  app.add_flag("--keep-going", o.keep_going, "Let the other ranks go on when one fails");
  app.add_option("--grace", o.grace,
                 "Seconds from a SIGTERM or SIGHUP that is passed on to SIGKILL")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  app.add_flag("--no-prefix", o.no_prefix, "Do not put \"[rank] \" before each line of output");
  app.add_option("-x,--export", o.exports,
                 "NAME or NAME=VALUE: a variable for all ranks, with --hosts besides all ANYCCL_*; "
                 "may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--ordered", o.ordered)->group("");  // for what `--hosts` starts
}

void add_node_flags(CLI::App& app, Options& o) {
  const char* const group = "Several nodes, with this command on each";
  app.add_option("--nnodes", o.nodes, "Number of nodes")
      ->check(CLI::Range(1, kMostNodes))
      ->group(group);
  app.add_option("--node-rank", o.node_rank, "Number of this node, from 0")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  app.add_option("--master", o.master,
                 "Address of node 0, HOST or HOST:PORT; default port: --port, with --hosts a free "
                 "one")
      ->group(group);
  app.add_option("--secret-file", o.secret_file,
                 "The same secret on every node (`anyccl secret` makes it); default: ANYCCL_SECRET")
      ->group(group);
}

void add_host_flags(CLI::App& app, Options& o) {
  const char* const group = "Several hosts, all started from here";
  app.add_option("--hosts", o.hosts, "a,b:2,user@c: hosts, and how many ranks there at most")
      ->group(group)
      ->excludes("--nnodes", "--node-rank", "--secret-file", "--port");
  app.add_option("--ssh", o.ssh, "Command that runs another one on a host")
      ->capture_default_str()
      ->needs("--hosts")
      ->group(group);
}

/// Reads numbers above 0, such as "3,1,2"; an empty text has none.
Result<std::vector<int>> parse_ranks(std::string_view text) {
  std::vector<int> numbers;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::string_view word = text.substr(at, text.find(',', at) - at);
    at += word.size() + 1;
    int number = 0;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (problem != std::errc{} || end != word.data() + word.size() || number < 1 ||
        number > kMostProcesses)
      return error(Code::invalid_argument, "--ranks {}: '{}' is not a number from 1 to {}", text,
                   word, kMostProcesses);
    numbers.push_back(number);
  }
  return numbers;
}

Status check_nodes(const Options& o) {
  if (!o.nodes) {
    if (o.ranks.size() > 1)
      return error(Code::invalid_argument, "--ranks has {} numbers: give --nnodes, too",
                   o.ranks.size());
    if (o.node_rank.value_or(0) == 0 && o.master.empty() && o.secret_file.empty()) return {};
    return error(Code::invalid_argument,
                 "--node-rank, --master and --secret-file are for a job of several nodes: give "
                 "--nnodes, too");
  }
  if (!o.node_rank || o.master.empty())
    return error(Code::invalid_argument,
                 "--nnodes {}: each node also needs --node-rank (0 to {}) and --master HOST:PORT",
                 *o.nodes, *o.nodes - 1);
  if (*o.node_rank >= *o.nodes)
    return error(Code::invalid_argument, "--node-rank {}: with --nnodes {} they are 0 to {}",
                 *o.node_rank, *o.nodes, *o.nodes - 1);
  if (o.ranks.size() != 1 && o.ranks.size() != static_cast<std::size_t>(*o.nodes))
    return error(Code::invalid_argument,
                 "--ranks has {} numbers; for --nnodes {} it has one for all, or one for each",
                 o.ranks.size(), *o.nodes);
  return {};
}

/// Those of node `node`.
int ranks_on(const Options& o, int node) {
  return o.ranks.size() == 1 ? o.ranks[0] : o.ranks[static_cast<std::size_t>(node)];
}

Result<HostPart> part_of(const Options& o) {
  ANYCCL_TRY(const HostPort master, parse_master(o.master));
  HostPart part;
  for (int node = 0; node < *o.nodes; ++node) {
    if (node < *o.node_rank) part.first_rank += ranks_on(o, node);
    part.world_size += ranks_on(o, node);
  }
  part.master_addr = master.host;
  part.master_port = master.port.value_or(o.port.value_or(kUsualPort));
  ANYCCL_TRY(part.secret, read_shared_secret(o.secret_file));
  return part;
}

/// A job of its own would be a surprise where this process seems to be a rank already.
Status check_not_in_a_job() {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR"})
    if (const auto value = value_now(name))
      return error(Code::invalid_argument,
                   "{}={} is set, so this is a rank of a job already: start the program itself, "
                   "without anyccl run; or give --nnodes, --node-rank and --master to start "
                   "several ranks on each node; or, for a separate job on this host, unset {}",
                   name, *value, name);
  ANYCCL_TRY(const std::optional<Launch> launch, find_launch(value_now));
  if (!launch || launch->size == 1) return {};
  return error(Code::invalid_argument,
               "{} has started this as process {} of {}: start the program itself, without anyccl "
               "run, or one process on each node and give --nnodes, --node-rank and --master",
               launch->by->name, launch->rank, launch->size);
}

Settings exports_of(const Options& o) {
  Settings settings;
  for (const std::string& text : o.exports) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals != std::string::npos)
      settings.emplace_back(name, text.substr(equals + 1));
    else if (const auto value = value_now(name))
      settings.emplace_back(name, *value);
  }
  return settings;
}

/// Returns all ANYCCL_* of this environment but the secret, and then those of --export.
Settings settings_for_hosts(const Options& o) {
  Settings settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (text.starts_with("ANYCCL_") && !text.starts_with("ANYCCL_SECRET="))
      settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  const Settings exports = exports_of(o);
  settings.insert(settings.end(), exports.begin(), exports.end());
  return settings;
}

Result<HostsJob> hosts_job_of(const Options& o, Job job) {
  HostsJob hosts_job{.job = std::move(job), .hosts = {}, .ssh = {}};
  if (o.ranks.size() > 1)
    return error(Code::invalid_argument, "--hosts: write numbers of ranks behind hosts: a:2,b:1");
  const auto ranks = o.ranks.empty() ? std::nullopt : std::optional<int>(o.ranks[0]);
  ANYCCL_TRY(hosts_job.hosts, parse_hosts(o.hosts, ranks));
  if (!o.master.empty()) {
    ANYCCL_TRY(hosts_job.master, parse_master(o.master));
  }
  hosts_job.ssh = CLI::detail::split_up(o.ssh);
  if (hosts_job.ssh.empty()) return error(Code::invalid_argument, "--ssh: there is no command");
  hosts_job.job.settings = settings_for_hosts(o);
  return hosts_job;
}

int report_usage_error(const Status& why) {
  fmt::print(stderr, "{}: {}\n", kName, why.message());
  return kUsageError;
}

int run_ordered() {
  Result<Order> order = read_order(STDIN_FILENO);
  if (!order.ok()) return report_usage_error(order.status());
  if (::chdir(order->folder.c_str()) != 0)
    return report_usage_error(system_error(errno, "enter the folder {}", order->folder));
  order->job.name = kName;
  order->job.part->control = STDIN_FILENO;
  return run_job(order->job);
}

int run_with(Options o, const Command& command) {
  if (o.ordered) return run_ordered();
  if (command.empty()) {
    fmt::print(stderr, "anyccl: run: the program to run is missing (see anyccl run --help)\n");
    return kUsageError;
  }
  Result<std::vector<int>> ranks = parse_ranks(o.ranks_text);
  if (!ranks.ok()) return report_usage_error(ranks.status());
  o.ranks = *std::move(ranks);
  Job job{.name = kName};
  job.command = command;
  job.prefix_output = !o.no_prefix;
  job.keep_going = o.keep_going;
  job.user_grace = std::chrono::seconds(o.grace);
  if (!o.hosts.empty()) {
    if (const Status s = check_not_in_a_job(); !s.ok()) return report_usage_error(s);
    const Result<HostsJob> hosts_job = hosts_job_of(o, std::move(job));
    return hosts_job.ok() ? run_on_hosts(*hosts_job) : report_usage_error(hosts_job.status());
  }
  if (o.ranks.empty())
    return report_usage_error(error(Code::invalid_argument, "--ranks is required"));
  if (const Status s = check_nodes(o); !s.ok()) return report_usage_error(s);
  job.settings = exports_of(o);
  job.ranks = ranks_on(o, o.node_rank.value_or(0));
  job.port = o.port;
  if (o.nodes) {
    Result<HostPart> part = part_of(o);
    if (!part.ok()) return report_usage_error(part.status());
    job.part = *std::move(part);
  } else if (const Status s = check_not_in_a_job(); !s.ok()) {
    return report_usage_error(s);
  }
  return run_job(job);
}

Body declare(CLI::App& app, const Command& command) {
  const auto options = std::make_shared<Options>();
  add_flags(app, *options);
  add_node_flags(app, *options);
  add_host_flags(app, *options);
  app.footer(
      "Examples: anyccl run -n 4 -- python train.py --lr 0.1\n"
      "  anyccl run --nnodes 2 --node-rank 0 --master a:29500 --secret-file job.secret -n 4 -- "
      "./program\n"
      "  anyccl run --hosts a,b -n 8 -- ./program\n\n"
      "Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and "
      "ANYCCL_SECRET.\n"
      "Rank 0 reads the standard input (not with --hosts), the others /dev/null. SIGINT, SIGTERM "
      "and\n"
      "SIGHUP are passed on; a second SIGINT kills, as does the end of --grace. When a rank fails, "
      "the\n"
      "others get SIGTERM, and SIGKILL after 5 s; with --nnodes, those of this node. The exit code "
      "is\n"
      "that of the rank that failed first (128 + signal), with --hosts that of the host whose "
      "failure\n"
      "was seen first; 127 if the program does not exist.");
  return [options, &command] { return run_with(*options, command); };
}

}  // namespace

const Verb verb_run{"run", "Run a program as several ranks, here or on several hosts", declare,
                    true};

}  // namespace anyccl::cli
