#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "algorithms_named.hpp"
#include "base/byte_size.hpp"
#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "explore/explorer.hpp"
#include "simulate/read_network.hpp"
#include "text_file.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

struct Flags {
  std::vector<std::string> algorithms = {"all"};
  std::vector<int> ranks = {2, 3, 4, 5, 6, 7, 8, 16};
  std::vector<int> roots = {1};
  std::vector<int> ranks_per_host = {2, 4};
  std::vector<std::string> bytes = {"1K", "1M", "64M"};
  std::vector<std::string> topologies, placements = {"linear", "random:1"};
  std::string machine, file;
};

/// In the order of the catalog, each once.
Result<std::vector<const Algorithm*>> algorithms_of(const Flags& flags) {
  std::vector<const Algorithm*> named;
  for (const std::string& what : flags.algorithms) {
    ANYCCL_TRY(const std::vector<const Algorithm*> more, algorithms_named(what));
    named.insert(named.end(), more.begin(), more.end());
  }
  std::vector<const Algorithm*> all(all_algorithms().begin(), all_algorithms().end());
  std::erase_if(all, [&](const Algorithm* algorithm) {
    return std::find(named.begin(), named.end(), algorithm) == named.end();
  });
  return all;
}

/// Each with room for all ranks.
std::vector<std::string> topologies_of(const Flags& flags) {
  if (!flags.topologies.empty()) return flags.topologies;
  const bool few = *std::max_element(flags.ranks.begin(), flags.ranks.end()) <= 16;
  return {"flat", "torus", few ? "fat-tree:k=4,taper=2" : "fat-tree:k=6,taper=3",
          "rails:devices=4"};
}

template <typename T>
std::vector<T> sorted_unique(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

Result<ExplorerSetting> setting_of(const Flags& flags) {
  ExplorerSetting setting;
  ANYCCL_TRY(setting.algorithms, algorithms_of(flags));
  setting.ranks = sorted_unique(flags.ranks);
  setting.roots = sorted_unique(flags.roots);
  setting.ranks_per_host = sorted_unique(flags.ranks_per_host);
  for (const std::string& text : flags.bytes) {
    ANYCCL_TRY(const std::size_t size, parse_size(text));
    setting.bytes.push_back(size);
  }
  setting.bytes = sorted_unique(setting.bytes);
  for (const std::string& topology : topologies_of(flags)) {
    setting.topologies.push_back({topology, topology});
    if (!topology.ends_with(".json")) continue;
    ANYCCL_TRY(setting.topologies.back().description, text_of_file(topology));
  }
  setting.placements = flags.placements;
  if (!flags.machine.empty()) {
    ANYCCL_TRY(const std::string text, text_of_file(flags.machine));
    ANYCCL_TRY(setting.machine, read_machine(text, flags.machine));
    setting.machine_name = flags.machine;
  }
  return setting;
}

Status explore(const Flags& flags) {
  ANYCCL_TRY(const ExplorerSetting setting, setting_of(flags));
  ANYCCL_TRY(const std::string data, explorer_data(setting));
  ANYCCL_TRY(const std::string page, explorer_page(data));
  return write_whole_file(flags.file, page);
}

int run(const Flags& flags) {
  const Status status = explore(flags);
  if (status.ok()) return 0;
  fmt::print(stderr, "anyccl: explore: {}\n", status.message());
  return status.code() == Code::invalid_argument ? kUsageError : 1;
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("algorithms", flags->algorithms,
                 "all_reduce/ring, a collective, an algorithm of each; default: all");
  app.add_option("-n,--ranks", flags->ranks, "Numbers of ranks; default: 2,3,4,5,6,7,8,16")
      ->delimiter(',')
      ->check(CLI::Range(1, 32));
  app.add_option("--root", flags->roots, "Roots beside 0, for collectives with a root; default: 1")
      ->delimiter(',')
      ->check(CLI::Range(0, 31));
  app.add_option("--ranks-per-host", flags->ranks_per_host,
                 "Ranks on each of several hosts, where that makes a difference; default: 2,4")
      ->delimiter(',')
      ->check(CLI::Range(1, 32));
  app.add_option("-b,--bytes", flags->bytes,
                 "Sizes of the vector, or of one block; suffixes K, M and G; default: 1K,1M,64M")
      ->delimiter(',');
  app.add_option("--topology", flags->topologies,
                 "What connects the ranks, as torus or torus:dims=4x4, or a file .json; may be "
                 "repeated; default: flat, torus, a tapered fat-tree and rails; kinds: " +
                     network_kinds());
  app.add_option(
         "--placement", flags->placements,
         "Where the ranks are in a topology: linear, or random:SEED; default: linear,random:1")
      ->delimiter(',');
  app.add_option("--machine", flags->machine,
                 "Read the constants of the machine from this file (JSON)");
  app.add_option("-o,--output", flags->file, "Write to this file")->required();
  app.footer(
      "Writes one page of HTML in which algorithms are played round by round: what each rank has,\n"
      "who sends what to whom, what the links of a network carry, and when, as anyccl simulate\n"
      "predicts it. The page needs no network. An address such as "
      "explorer.html#all_reduce/ring/4/3\n"
      "is one of its states: an algorithm, a number of ranks, and a round.\n\n"
      "Example: anyccl explore -o explorer.html\n"
      "         anyccl explore ring halving_doubling -n 4,8 --topology ring torus:dims=2x4 -o "
      "a.html");
  return [flags] { return run(*flags); };
}

}  // namespace

const Verb verb_explore{"explore", "Write a page of HTML to step through algorithms", declare};

}  // namespace anyccl::cli
