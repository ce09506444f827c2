#include "launch/job.hpp"

#include <fmt/format.h>

#include "launch/rendezvous.hpp"
#include "launch/signals.hpp"
#include "launch/supervisor.hpp"

namespace anyccl::cli {
namespace {

int fail(const Job& job, std::string_view message, int exit_code = 1) {
  fmt::print(stderr, "{}: {}\n", job.name, message);
  return exit_code;
}

/// The settings of all ranks; rank and local rank come on top. `ports` is kept while the job runs.
Result<Settings> common_settings(const Job& job, PortPair& ports) {
  Settings settings = job.settings;
  int port = job.port.value_or(0);
  if (port == 0) {
    Result<PortPair> found = free_port_pair();
    if (!found.ok()) return found.status();
    ports = *std::move(found);
    port = ports.first;
  }
  Result<std::string> secret = random_secret();
  if (!secret.ok()) return secret.status();
  settings.emplace_back("WORLD_SIZE", std::to_string(job.ranks));
  settings.emplace_back("LOCAL_WORLD_SIZE", std::to_string(job.ranks));
  settings.emplace_back("MASTER_ADDR", "127.0.0.1");
  settings.emplace_back("MASTER_PORT", std::to_string(port));
  settings.emplace_back("ANYCCL_SECRET", *secret);
  return settings;
}

ChildSetup setup_of(const Job& job, const Settings& common, int rank, const sigset_t& signal_mask) {
  ChildSetup setup{.command = job.command, .settings = common};
  setup.settings.emplace_back("RANK", std::to_string(rank));
  setup.settings.emplace_back("LOCAL_RANK", std::to_string(rank));
  setup.inherit_stdin = rank == 0;
  setup.pipe_output = job.prefix_output;
  // Only the terminal's foreground group may read from it, so rank 0 stays in ours there.
  setup.own_group = rank != 0 || ::isatty(STDIN_FILENO) == 0;
  setup.signal_mask = signal_mask;
  return setup;
}

}  // namespace

int run_job(const Job& job) {
  PortPair ports;
  Result<Settings> common = common_settings(job, ports);
  if (!common.ok()) return fail(job, common.status().message());
  Result<SignalQueue> signals = SignalQueue::open();
  if (!signals.ok()) return fail(job, signals.status().message());

  Supervisor supervisor(job, *signals);
  for (int rank = 0; rank < job.ranks; ++rank) {
    Child child;
    const StartFailure failure =
        start_child(setup_of(job, *common, rank, signals->former_mask()), child);
    if (!failure.status.ok()) {
      supervisor.kill_all();
      return fail(job, failure.status.message(), failure.exit_code);
    }
    supervisor.add(std::move(child));
  }
  return supervisor.wait_for_all();
}

}  // namespace anyccl::cli
