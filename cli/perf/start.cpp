#include "perf/start.hpp"

#include <fmt/format.h>

#include <thread>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/launchers.hpp"
#include "launch/job.hpp"
#include "launch/own_command.hpp"
#include "perf/sweep.hpp"

namespace anyccl::cli {
namespace {

constexpr const char* kName = "anyccl perf";

int fail(const Status& status) {
  fmt::print(stderr, "{}: {}\n", kName, status.message());
  return status.code() == Code::invalid_argument ? 2 : 1;
}

/// Returns the `settings` of which this environment has another value; an unset one counts as "".
Settings missing_settings(const Settings& settings) {
  Settings missing;
  for (const auto& [name, value] : settings)
    if (value_now(name).value_or("") != value) missing.emplace_back(name, value);
  return missing;
}

/// Runs one rank; on an error the other ranks' calls fail too.
Result<std::int64_t> run_rank(const PerfOptions& options, Comm& comm, std::string_view where) {
  Result<std::int64_t> wrong = sweep(options, comm, where);
  if (!wrong.ok()) comm.abort();
  return wrong;
}

int exit_code(const Result<std::int64_t>& wrong) {
  if (!wrong.ok()) return fail(wrong.status());
  return *wrong == 0 ? 0 : 1;
}

int run_as_process(const PerfOptions& options) {
  Result<Comm> comm = Comm::join();
  if (!comm.ok()) return fail(comm.status());
  return exit_code(run_rank(options, *comm, fmt::format("{} ranks (processes)", comm->ranks())));
}

int run_as_threads(const PerfOptions& options, int count) {
  Result<std::vector<Comm>> comms = Comm::make_all(count);
  if (!comms.ok()) return fail(comms.status());
  std::vector<int> codes(comms->size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < comms->size(); ++rank)
    threads.emplace_back([&, rank] {
      codes[rank] =
          exit_code(run_rank(options, (*comms)[rank], fmt::format("{} ranks (threads)", count)));
    });
  threads.clear();  // Joins them.
  return *std::max_element(codes.begin(), codes.end());
}

int start_processes(const Ranks& ranks, int count, std::vector<std::string> command) {
  Job job;
  job.name = kName;
  job.ranks = count;
  job.command = std::move(command);
  job.settings = ranks.settings;
  job.prefix_output = false;
  return run_job(job);
}

}  // namespace

Settings default_settings(const std::string& transport) {
  return {{"ANYCCL_TUNER_TABLE", std::string(kNoTable)},
          {"ANYCCL_ALGO", ""},
          {"ANYCCL_PROTO", ""},
          {"ANYCCL_CHUNK_SIZE", ""},
          {"ANYCCL_BUFFSIZE", ""},
          {"ANYCCL_SHM_COPY", ""},
          {"ANYCCL_TRANSPORT", transport}};
}

Status check_not_a_rank(const Config& config, std::string_view what) {
  ANYCCL_TRY(const std::optional<PlaceInJob> place, find_place(config));
  if (!place) return {};
  return error(Code::invalid_argument,
               "{} starts its ranks itself: this is rank {} of a job already", what, place->rank);
}

int run_perf(const PerfOptions& options, const Ranks& ranks) {
  Result<Config> config = read_config();
  if (!config.ok()) return fail(config.status());
  const Result<std::optional<PlaceInJob>> found = find_place(*config);
  if (!found.ok()) return fail(found.status());
  const std::optional<PlaceInJob>& place = *found;
  Result<std::vector<std::string>> command = own_command();
  if (!command.ok()) return fail(command.status());
  if (!ranks.threads && !place)
    return start_processes(ranks, ranks.count.value_or(kUsualRanks), *command);

  // The library reads the environment of this process, so it must be there from the start.
  if (const Settings missing = missing_settings(ranks.settings); !missing.empty())
    return fail(replace_process(*command, missing));
  if (ranks.threads) return run_as_threads(options, ranks.count.value_or(kUsualRanks));
  if (ranks.count && ranks.count != place->size)
    return fail(error(Code::invalid_argument,
                      "this is rank {} of a job of {} ranks already: --ranks {} does not fit",
                      place->rank, place->size, *ranks.count));
  return run_as_process(options);
}

}  // namespace anyccl::cli
