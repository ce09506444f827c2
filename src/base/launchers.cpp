#include "base/launchers.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace anyccl {
namespace {

// A launcher that another one uses to start its daemons comes after it: their variables are there,
// too, and count the daemons.
const Launcher kLaunchers[] = {
    {.name = "Open MPI's mpirun",
     .rank = "OMPI_COMM_WORLD_RANK",
     .size = "OMPI_COMM_WORLD_SIZE",
     .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .hosts = "",
     .job = {"PMIX_NAMESPACE"},
     .host_list = "",
     .passes_variable = "export it, and mpirun -x NAME passes it on"},
    {.name = "MPICH's mpiexec",  // Hydra, also in Intel MPI
     .rank = "PMI_RANK",
     .size = "PMI_SIZE",
     .local_size = "MPI_LOCALNRANKS",
     .hosts = "",
     .job = {},
     .host_list = "",
     .passes_variable = "export it, and mpiexec passes it on"},
    {.name = "Slurm's srun",
     .rank = "SLURM_PROCID",
     .size = "SLURM_STEP_NUM_TASKS",  // only in a step: a batch script is no rank
     .local_size = "",
     .hosts = "SLURM_STEP_NUM_NODES",
     .job = {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     .host_list = "SLURM_STEP_NODELIST",
     .passes_variable = "export it, and srun passes it on"},
};

Result<int> number_in(std::string_view name, const std::string& text, int low) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value < low)
    return error(Code::invalid_argument, "{}={} is not a number from {} on", name, text, low);
  return value;
}

/// The process that has started the ranks of this host: every rank leads a session of its own, also
/// if a script stands between.
std::string starter_pid() {
  std::ifstream status(fmt::format("/proc/{}/stat", ::getsid(0)));
  std::string text;
  std::getline(status, text);
  const std::size_t end = text.rfind(')');  // of the name, which may contain anything
  if (end == std::string::npos || end + 4 > text.size()) return std::to_string(::getppid());
  const std::string_view parent = std::string_view(text).substr(end + 4);  // ") S "
  return std::string(parent.substr(0, parent.find(' ')));
}

std::string job_of(const Launcher& launcher, const Lookup& lookup) {
  std::string job(launcher.name);
  for (const std::string_view name : launcher.job) {
    const std::optional<std::string> value = lookup(name);
    if (!value) return job + "/" + starter_pid();
    job += "/" + *value;
  }
  return launcher.job.empty() ? job + "/" + starter_pid() : job;
}

Result<Launch> read_launch(const Launcher& launcher, const Lookup& lookup) {
  const auto number = [&](std::string_view name, int low) {
    return number_in(name, lookup(name).value_or(""), low);
  };
  Launch launch{.by = &launcher, .job = job_of(launcher, lookup), .first_host = {}};
  ANYCCL_TRY(launch.rank, number(launcher.rank, 0));
  ANYCCL_TRY(launch.size, number(launcher.size, 1));
  if (launch.rank >= launch.size)
    return error(Code::invalid_argument, "{}={} is not in a job of {}={} ranks", launcher.rank,
                 launch.rank, launcher.size, launch.size);
  if (!launcher.hosts.empty()) {
    ANYCCL_TRY(const int hosts, number(launcher.hosts, 1));
    launch.one_host = hosts == 1;
  } else {
    ANYCCL_TRY(const int local_size, number(launcher.local_size, 1));
    launch.one_host = local_size == launch.size;
  }
  if (!launcher.host_list.empty())
    launch.first_host = first_host_of(lookup(launcher.host_list).value_or(""));
  return launch;
}

/// Whether the variables of the rank, of the number of ranks and of that of hosts, or else of local
/// ranks, are set. Those that name the job may be missing.
bool has_started_this(const Launcher& launcher, const Lookup& lookup) {
  const std::string_view place = launcher.hosts.empty() ? launcher.local_size : launcher.hosts;
  return lookup(launcher.rank) && lookup(launcher.size) && lookup(place);
}

}  // namespace

void read_launcher_variables(Config& config) {
  const auto read = [&](const char* name, int low, int high, std::optional<int>& into) {
    into.reset();
    const std::string text = value_now(name).value_or("");
    if (text.empty()) return;
    const Result<int> number = number_in(name, text, low);
    if (number.ok() && *number <= high)
      into = *number;
    else
      config.unreadable.emplace_back(
          name, error(Code::invalid_argument, "{}={} is not a number from {} to {}", name, text,
                      low, high));
  };
  read("RANK", 0, 65535, config.rank);
  read("WORLD_SIZE", 1, 65536, config.world_size);
  read("MASTER_PORT", 1, 65535, config.master_port);
  config.of_launchers.clear();
  for (const Launcher& launcher : kLaunchers) {
    std::vector<std::string_view> names = launcher.job;
    names.insert(names.end(), {launcher.rank, launcher.size, launcher.local_size, launcher.hosts,
                               launcher.host_list});
    for (const std::string_view name : names)
      if (const auto value = name.empty() ? std::nullopt : value_now(name))
        config.of_launchers.emplace_back(name, *value);
  }
}

std::span<const Launcher> launchers() {
  return kLaunchers;
}

Result<std::optional<Launch>> find_launch(const Lookup& lookup) {
  for (const Launcher& launcher : kLaunchers) {
    if (!has_started_this(launcher, lookup)) continue;
    ANYCCL_TRY(Launch launch, read_launch(launcher, lookup));
    return std::optional(std::move(launch));
  }
  return std::optional<Launch>();
}

Result<std::optional<Launch>> find_launch(const Config& config) {
  return find_launch([&](std::string_view name) -> std::optional<std::string> {
    for (const auto& [known, value] : config.of_launchers)
      if (known == name) return value;
    return std::nullopt;
  });
}

Result<std::optional<PlaceInJob>> find_place(const Config& config) {
  if (config.rank) return std::optional(PlaceInJob{*config.rank, config.world_size.value_or(0)});
  ANYCCL_TRY(const std::optional<Launch> launch, find_launch(config));
  if (!launch || launch->size == 1) return std::optional<PlaceInJob>();
  return std::optional(PlaceInJob{launch->rank, launch->size});
}

std::string first_host_of(std::string_view list) {
  std::string host;
  while (!list.empty() && list[0] != ',') {
    if (list[0] != '[') {
      host.push_back(list[0]);
      list.remove_prefix(1);
      continue;
    }
    const std::string_view numbers = list.substr(1, list.find(']') - 1);
    host += numbers.substr(0, numbers.find_first_of("-,"));
    list.remove_prefix(std::min(list.size(), numbers.size() + 2));
  }
  return host;
}

int port_of_job(const Launch& launch) {
  constexpr std::uint64_t kFirst = 10000, kPorts = 20000;
  return static_cast<int>(kFirst + hash_of(launch.job) % kPorts);
}

}  // namespace anyccl
