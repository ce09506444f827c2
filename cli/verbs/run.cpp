#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "launch/job.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

constexpr int kLastPort = 65534;  // anyccl's own port is the next one.

Body declare(CLI::App& app, const Command& command) {
  const auto job = std::make_shared<Job>();
  job->name = "anyccl run";
  const auto no_prefix = std::make_shared<bool>(false);
  app.add_option("-n,--ranks", job->ranks, "Number of ranks (processes) to start")
      ->required()
      ->check(CLI::Range(1, 65536));
  app.add_option("--port", job->port, "MASTER_PORT; default: a free port P where P + 1 is free")
      ->check(CLI::Range(1, kLastPort));
  app.add_flag("--keep-going", job->keep_going, "Let the other ranks go on when one fails");
  const auto grace = std::make_shared<int>(static_cast<int>(job->user_grace.count()));
  app.add_option("--grace", *grace, "Seconds from a SIGTERM or SIGHUP that is passed on to SIGKILL")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  app.add_flag("--no-prefix", *no_prefix, "Do not put \"[rank] \" before each line of output");
  app.footer(
      "Example: anyccl run -n 4 -- python train.py --lr 0.1\n\n"
      "Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and "
      "ANYCCL_SECRET.\n"
      "Rank 0 reads the standard input, the others /dev/null. SIGINT, SIGTERM and SIGHUP are\n"
      "passed on; a second SIGINT kills, as does the end of --grace. When a rank fails, the others "
      "get SIGTERM, and SIGKILL\n"
      "after 5 s. The exit code is that of the rank that failed first (128 + signal), 127 if the\n"
      "program does not exist.");
  return [job, no_prefix, grace, &command] {
    if (command.empty()) {
      fmt::print(stderr, "anyccl: run: the program to run is missing (see anyccl run --help)\n");
      return kUsageError;
    }
    job->command = command;
    job->prefix_output = !*no_prefix;
    job->user_grace = std::chrono::seconds(*grace);
    return run_job(*job);
  };
}

}  // namespace

const Verb verb_run{"run", "Run a program as several local ranks", declare, true};

}  // namespace anyccl::cli
