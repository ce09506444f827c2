#include "combinations.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <fstream>

#include "base/config.hpp"
#include "base/error.hpp"
#include "launch/job.hpp"
#include "launch/own_command.hpp"
#include "perf/files.hpp"
#include "perf/report.hpp"
#include "perf/start.hpp"

namespace anyccl::cli {
namespace {

int report_failure(const Status& status) {
  fmt::print(stderr, "anyccl perf: {}\n", status.message());
  return status.code() == Code::invalid_argument ? 2 : 1;
}

/// This command without --all-combinations and --json.
std::vector<std::string> without_all_combinations(const std::vector<std::string>& command) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == "--all-combinations" || command[i].starts_with("--json=")) continue;
    if (command[i] == "--json")
      ++i;
    else
      kept.push_back(command[i]);
  }
  return kept;
}

/// Runs a command to its end; its exit code.
Result<int> run(std::vector<std::string> command) {
  Child child;
  const StartFailure failure = start_child(
      {.command = std::move(command), .inherit_stdin = true, .own_group = false}, child);
  if (!failure.status.ok()) return failure.status;
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0)
    if (errno != EINTR) return system_error(errno, "wait for a measurement");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Status write_joined(const std::string& file, const std::vector<std::string>& parts) {
  ANYCCL_TRY(const std::string text, joined_json(parts));
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) return system_error(errno, "write {}", file);
  return {};
}

Result<int> run_each(const PerfOptions& options, int ranks) {
  ANYCCL_TRY(const Config config, read_config());
  ANYCCL_CHECK(check_not_a_rank(config, "--all-combinations"));
  ANYCCL_TRY(const std::vector<std::string> command, own_command());
  ANYCCL_TRY(const TemporaryFolder folder, TemporaryFolder::create());
  std::vector<std::string> parts;
  int worst = 0, done = 0;
  for (const Combination& c : all_combinations()) {
    const Shape shape{c.algorithm->collective, ranks, Rank{options.root}, false, {}};
    if (name(c.algorithm->collective) != options.operation->name || !c.algorithm->supports(shape))
      continue;
    const std::string file = fmt::format("{}/{}.json", folder.path(), done++);
    std::vector<std::string> one = without_all_combinations(command);
    for (const std::string_view word :
         {std::string_view("--algo"), c.algorithm->name, std::string_view("--proto"), c.protocol,
          std::string_view("--json"), std::string_view(file)})
      one.emplace_back(word);
    ANYCCL_TRY(const int code, run(std::move(one)));
    worst = std::max(worst, code);
    if (code == 0 || code == 1) parts.push_back(file);
    if (code > 128) break;  // interrupted
  }
  if (done == 0)
    return error(Code::invalid_argument, "{} has no algorithms to choose from",
                 options.operation->name);
  if (!options.json.empty()) ANYCCL_CHECK(write_joined(options.json, parts));
  fmt::print("# {} combinations of algorithm and protocol, {}\n", done,
             worst == 0 ? "all right" : "FAILED");
  return worst;
}

}  // namespace

int run_all_combinations(const PerfOptions& options, const Ranks& ranks) {
  const Result<int> code = run_each(options, ranks.count.value_or(kUsualRanks));
  return code.ok() ? *code : report_failure(code.status());
}

}  // namespace anyccl::cli
