#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "algorithm/loaded/loaded_algorithm.hpp"
#include "algorithms_named.hpp"
#include "base/byte_size.hpp"
#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "explore/explorer.hpp"
#include "simulate/read_network.hpp"
#include "trace/clocks.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

constexpr int kMostRanks = 32;
constexpr std::size_t kMostSizes = 4;  // of those that were recorded

struct Flags {
  std::vector<std::string> algorithms = {"all"};
  std::vector<int> ranks;
  std::vector<int> roots = {1};
  std::vector<int> ranks_per_host = {2, 4};
  std::vector<std::string> bytes, topologies, placements = {"linear", "random:1"}, traces;
  std::string machine, file;
};

/// Whether both are one algorithm, also if its file was read twice.
bool is_same(const Algorithm& a, const Algorithm& b) {
  return &a == &b ||
         (a.loaded != nullptr && b.loaded != nullptr && a.loaded->hash() == b.loaded->hash());
}

/// In the order of the catalog, then those of files; each once.
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
  for (const Algorithm* algorithm : named) {
    const auto known = std::find_if(
        all.begin(), all.end(), [&](const Algorithm* one) { return id(*one) == id(*algorithm); });
    if (known == all.end())
      all.push_back(algorithm);
    else if (!is_same(**known, *algorithm))
      return error(Code::invalid_argument,
                   "two of the algorithms have the name {}: give that of the file another one",
                   id(*algorithm));
  }
  return all;
}

/// Returns the topologies of the flags, or else four usual ones with room for all ranks.
std::vector<std::string> topologies_of(const Flags& flags, const std::vector<int>& ranks) {
  if (!flags.topologies.empty()) return flags.topologies;
  const bool few = *std::max_element(ranks.begin(), ranks.end()) <= 16;
  return {"flat", "torus", few ? "fat-tree:k=4,taper=2" : "fat-tree:k=6,taper=3",
          "rails:devices=4"};
}

template <typename T>
std::vector<T> sorted_unique(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// Returns those of the flags, or else of recorded communicators with up to kMostRanks, or else
/// eight usual ones.
std::vector<int> ranks_of(const Flags& flags, const std::vector<RankTrace>& traces) {
  if (!flags.ranks.empty()) return sorted_unique(flags.ranks);
  std::vector<int> ranks;
  for (const RankTrace& trace : traces)
    if (trace.size >= 1 && trace.size <= kMostRanks) ranks.push_back(trace.size);
  if (ranks.empty()) ranks = {2, 3, 4, 5, 6, 7, 8, 16};
  return sorted_unique(std::move(ranks));
}

/// Those of most of the recorded collectives.
std::vector<std::size_t> sizes_of(const std::vector<RankTrace>& traces) {
  std::map<std::size_t, std::size_t> calls;  // by size
  for (const RankTrace& trace : traces)
    for (const TracedCall& call : trace.calls)
      if (call.sequence != 0 && call.bytes > 0) ++calls[call.bytes];
  std::vector<std::pair<std::size_t, std::size_t>> order(calls.begin(), calls.end());
  std::ranges::stable_sort(order, std::greater<>{}, [](const auto& size) { return size.second; });
  order.resize(std::min(order.size(), kMostSizes));
  std::vector<std::size_t> sizes;
  for (const auto& [size, count] : order) sizes.push_back(size);
  return sizes;
}

/// Returns the sizes of the flags, or else of the traces, or else three usual ones.
Result<std::vector<std::size_t>> bytes_of(const Flags& flags,
                                          const std::vector<RankTrace>& traces) {
  std::vector<std::size_t> sizes;
  for (const std::string& text : flags.bytes) {
    ANYCCL_TRY(const std::size_t size, parse_size(text));
    sizes.push_back(size);
  }
  if (sizes.empty()) sizes = sizes_of(traces);
  if (sizes.empty()) sizes = {std::size_t{1} << 10, std::size_t{1} << 20, std::size_t{64} << 20};
  return sorted_unique(std::move(sizes));
}

/// Reads the files that the flags name. Traces are brought to one clock.
Result<ExplorerSetting> setting_of(const Flags& flags) {
  ExplorerSetting setting;
  ANYCCL_TRY(setting.algorithms, algorithms_of(flags));
  if (!flags.traces.empty()) {
    ANYCCL_TRY(setting.traces, read_traces(flags.traces));
    align(setting.traces);
  }
  setting.ranks = ranks_of(flags, setting.traces);
  setting.roots = sorted_unique(flags.roots);
  setting.ranks_per_host = sorted_unique(flags.ranks_per_host);
  ANYCCL_TRY(setting.bytes, bytes_of(flags, setting.traces));
  for (const std::string& topology : topologies_of(flags, setting.ranks)) {
    setting.topologies.push_back({topology, topology});
    if (!topology.ends_with(".json")) continue;
    ANYCCL_TRY(setting.topologies.back().description, read_whole_file(topology));
  }
  setting.placements = flags.placements;
  if (!flags.machine.empty()) {
    ANYCCL_TRY(const std::string text, read_whole_file(flags.machine));
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
  app.add_option("-n,--ranks", flags->ranks,
                 "Numbers of ranks; default: 2,3,4,5,6,7,8,16, or those of --trace")
      ->delimiter(',')
      ->check(CLI::Range(1, kMostRanks));
  app.add_option("--root", flags->roots, "Roots beside 0, for collectives with a root; default: 1")
      ->delimiter(',')
      ->check(CLI::Range(0, 31));
  app.add_option("--ranks-per-host", flags->ranks_per_host,
                 "Ranks on each of several hosts, where that makes a difference; default: 2,4")
      ->delimiter(',')
      ->check(CLI::Range(1, 32));
  app.add_option("-b,--bytes", flags->bytes,
                 "Sizes of the vector, or of one block; suffixes K, M and G; default: 1K,1M,64M, "
                 "or those of most collectives of --trace")
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
  app.add_option(
      "--trace", flags->traces,
      "Show the recorded operations of a job, too: files of ANYCCL_TRACE, or folders with them");
  app.add_option("-o,--output", flags->file, "Write to this file")->required();
  app.footer(
      "Writes one page of HTML in which algorithms are played round by round: what each rank has,\n"
      "who sends what to whom, what the links of a network carry, and when, as anyccl simulate\n"
      "predicts it. The page needs no network. An address such as "
      "explorer.html#all_reduce/ring/4/3\n"
      "is one of its states: an algorithm, a number of ranks, and a round.\n"
      "With --trace it has what a job measured, too.\n\n"
      "Example: anyccl explore -o explorer.html\n"
      "         anyccl explore --trace traces -o job.html\n"
      "         anyccl explore ring halving_doubling -n 4,8 --topology ring torus:dims=2x4 -o "
      "a.html");
  return [flags] { return run(*flags); };
}

}  // namespace

const Verb verb_explore{"explore", "Write a page of HTML to step through algorithms", declare};

}  // namespace anyccl::cli
