#include "blame/blame.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::vector<std::string> paths;
  bool json = false;
};

int run(const Flags& flags) {
  const Result<std::vector<RankDump>> dumps = read_dumps(flags.paths);
  if (!dumps.ok()) {
    fmt::print(stderr, "anyccl: blame: {}\n", printable(dumps.status().message()));
    return kUsageError;
  }
  const Blame blame = find_blame(*dumps);
  if (flags.json)
    fmt::print("{}\n", Json{{"kind", blame.kind},
                            {"communicator", blame.communicator},
                            {"ranks", blame.ranks},
                            {"text", blame.text}}
                           .dump(1, ' ', false, Json::error_handler_t::replace));
  else
    fmt::print("{}\n", printable(blame.text));
  return 0;
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("dumps", flags->paths,
                 "Dumps of the ranks, or folders with such, named anyccl-*.json")
      ->required();
  app.add_flag("--json", flags->json, "Print JSON");
  app.footer(
      "Says which rank keeps back the others of a job that hangs or has failed, in which call and\n"
      "since when. Ranks write dumps when they fail or wait for long, if ANYCCL_DUMP_DIR names a\n"
      "folder, and when anycclCommDump is called. Give those of all ranks and communicators.\n\n"
      "Example: ANYCCL_DUMP_DIR=/tmp/dumps anyccl run -n 4 -- ./train\n"
      "         anyccl blame /tmp/dumps");
  return [flags] { return run(*flags); };
}

}  // namespace

const Verb verb_blame{"blame", "Say which rank held up the others, from their dumps", declare};

}  // namespace anyccl::cli
