#include "launch/job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "launch/rendezvous.hpp"
#include "launch/signals.hpp"
#include "launch/supervisor.hpp"

namespace anyccl::cli {

int fail(const Job& job, std::string_view message, int exit_code) {
  fmt::print(stderr, "{}: {}\n", job.name, message);
  return exit_code;
}

namespace {

/// The settings of all ranks; rank and local rank come on top. `ports` is kept while the job runs.
Result<Settings> common_settings(const Job& job, PortPair& ports) {
  Settings settings = job.settings;
  settings.emplace_back("LOCAL_WORLD_SIZE", std::to_string(job.ranks));
  if (job.part) {
    settings.emplace_back("WORLD_SIZE", std::to_string(job.part->world_size));
    settings.emplace_back("MASTER_ADDR", job.part->master_addr);
    settings.emplace_back("MASTER_PORT", std::to_string(job.part->master_port));
    settings.emplace_back("ANYCCL_SECRET", job.part->secret);
    return settings;
  }
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
  settings.emplace_back("MASTER_ADDR", "127.0.0.1");
  settings.emplace_back("MASTER_PORT", std::to_string(port));
  settings.emplace_back("ANYCCL_SECRET", *secret);
  return settings;
}

int rank_of(const Job& job, int local_rank) {
  return (job.part ? job.part->first_rank : 0) + local_rank;
}

ChildSetup setup_of(const Job& job, const Settings& common, int local_rank,
                    const sigset_t& signal_mask) {
  ChildSetup setup{.command = job.command, .settings = common};
  const int rank = rank_of(job, local_rank);
  setup.settings.emplace_back("RANK", std::to_string(rank));
  setup.settings.emplace_back("LOCAL_RANK", std::to_string(local_rank));
  setup.inherit_stdin = rank == 0 && (!job.part || job.part->control < 0);
  setup.pipe_output = job.prefix_output;
  // Only the terminal's foreground group may read from it, so rank 0 stays in ours there.
  setup.own_group = rank != 0 || ::isatty(STDIN_FILENO) == 0;
  setup.signal_mask = signal_mask;
  return setup;
}

/// "rank 3 (pid 4711)", with the host where there are several.
std::string title_of(const Job& job, int local_rank, const Child& child) {
  char host[256] = "";
  if (!job.part || ::gethostname(host, sizeof host - 1) != 0)
    return fmt::format("rank {} (pid {})", rank_of(job, local_rank), child.pid);
  return fmt::format("rank {} (host {}, pid {})", rank_of(job, local_rank), host, child.pid);
}

}  // namespace

int run_job(const Job& job) {
  PortPair ports;
  Result<Settings> common = common_settings(job, ports);
  if (!common.ok()) return fail(job, common.status().message());
  Result<SignalQueue> signals = SignalQueue::open();
  if (!signals.ok()) return fail(job, signals.status().message());

  Result<Guard> guard = Guard::start();
  if (!guard.ok()) return fail(job, guard.status().message());

  Supervisor supervisor(job, *signals, *std::move(guard));
  for (int rank = 0; rank < job.ranks; ++rank) {
    Child child;
    ChildSetup setup = setup_of(job, *common, rank, signals->former_mask());
    setup.guard = &supervisor.guard();
    const StartFailure failure = start_child(setup, child);
    if (!failure.status.ok()) {
      supervisor.kill_all();
      return fail(job, failure.status.message(), failure.exit_code);
    }
    std::string title = title_of(job, rank, child);
    supervisor.add(std::move(child), std::move(title), rank_of(job, rank));
  }
  if (job.part) supervisor.obey(job.part->control);
  return supervisor.wait_for_all();
}

}  // namespace anyccl::cli
