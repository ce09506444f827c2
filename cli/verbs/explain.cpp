#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "framework/tuning/tuner.hpp"
#include "hosts_flag.hpp"
#include "perf/sizes.hpp"
#include "platform/probe/host_facts.hpp"
#include "runtime/process/init_context.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string collective, bytes = "1M", transport = "shm", table, algorithm, protocol;
  int ranks = 4, root = 0, cores = 0, level = -1;
  bool narrow = false;
  std::vector<int> hosts, near;
  bool json = false;
};

/// The query with its answer.
struct Explanation {
  TunerQuery query;
  TunerPolicy policy;
  Choice choice;
  std::string reason;
  std::vector<Candidate> candidates;
  int level = kLevelOfRuns;
};

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const Algorithm* a : all_algorithms())  // v-forms are among those of their collective
    if (std::find(names.begin(), names.end(), name(a->collective)) == names.end())
      names.emplace_back(name(a->collective));
  return names;
}

Result<Collective> collective_named(std::string_view wanted) {
  for (const Algorithm* a : all_algorithms())
    if (name(a->collective) == wanted) return a->collective;
  return error(Code::invalid_argument, "there is no collective '{}'", wanted);
}

Result<Explanation> explain(const Flags& flags) {
  Explanation e;
  ANYCCL_TRY(const Collective collective, collective_named(flags.collective));
  if (flags.root < 0 || flags.root >= flags.ranks)
    return error(Code::invalid_argument, "--root {} is not one of {} ranks", flags.root,
                 flags.ranks);
  ANYCCL_TRY(std::vector<int> hosts, host_of(flags.hosts, flags.ranks));
  ANYCCL_TRY(e.query.bytes, parse_size(flags.bytes));
  e.query.network = flags.transport == "tcp" || flags.hosts.size() > 1;
  const int together =
      flags.hosts.empty() ? flags.ranks : *std::max_element(flags.hosts.begin(), flags.hosts.end());
  const int cores = flags.cores > 0 ? flags.cores : probe::host_facts().cores;
  e.query.ranks_per_core = std::max(1, together / cores);
  if (hosts.empty()) {
    ANYCCL_TRY(hosts, host_of(flags.near, flags.ranks, "--near"));
  }
  e.query.shape = {collective, flags.ranks, Rank{flags.root}, false, std::move(hosts)};
  ANYCCL_TRY(Config config, read_config());
  if (!flags.table.empty()) config.tuner_table = flags.table;
  ANYCCL_TRY(const auto table, table_of(config));
  TunerPolicy& policy = e.policy;
  ANYCCL_TRY(policy.environment.algorithms, flags.algorithm.empty()
                                                ? AlgorithmRules::parse(config.algo)
                                                : AlgorithmRules::parse(flags.algorithm, "--algo"));
  ANYCCL_TRY(policy.environment.protocols, flags.protocol.empty()
                                               ? ProtocolRules::parse(config.proto)
                                               : ProtocolRules::parse(flags.protocol, "--proto"));
  policy.environment.chunk_bytes = config.chunk_bytes;
  policy.environment.level = flags.level >= 0 ? flags.level : config.reproducible;
  e.level = level_of(policy, nullptr);
  if (e.level >= kLevelOfTrees && reduces(collective))
    e.query.need = tree_for(flags.narrow ? DType::bf16 : DType::f32);
  if (table != nullptr) policy.tables.push_back(table);
  ANYCCL_TRY(e.choice, select_algorithm(e.query, policy));
  e.reason = reason(e.choice);
  e.candidates = candidates(e.query, table.get());
  return e;
}

/// Returns the candidate that has the chosen algorithm.
const Candidate& chosen(const Explanation& e) {
  return *std::find_if(e.candidates.begin(), e.candidates.end(),
                       [&](const Candidate& c) { return c.algorithm == e.choice.algorithm; });
}

/// The reason for or against it.
std::string reason_for(const Explanation& e, const Candidate& c) {
  if (c.algorithm == e.choice.algorithm) return "chosen";
  if (!c.possible)
    return fmt::format("cannot be done: it needs {}, not {} ranks", c.algorithm->needs,
                       e.query.shape.size);
  if (!meets(*c.algorithm, e.query.shape, e.query.need))
    return fmt::format("level {} needs the aligned tree{}", e.level,
                       e.query.need == Order::tree_in_one_step ? ", rounded once" : "");
  if (const auto by = excluded_by(*c.algorithm, e.query, e.policy); !by.empty())
    return fmt::format("excluded by {}", by);
  const Candidate& best = chosen(e);
  if (c.measured_us && best.measured_us)
    return fmt::format("measured x{:.2f} of the chosen one", *c.measured_us / *best.measured_us);
  constexpr double kEqual = 1.005;
  if (c.predicted_us >= best.predicted_us && c.predicted_us < kEqual * best.predicted_us)
    return "equal by the model: measure both (anyccl perf --algo)";
  if (best.predicted_us > 0 && c.predicted_us >= best.predicted_us)
    return fmt::format("slower by the model: predicted x{:.2f} of the chosen one",
                       c.predicted_us / best.predicted_us);
  return "faster by the model, which knows no contention: measure both (anyccl perf --algo)";
}

/// Where publications may lie, and who says so.
std::string protocol_text(const Explanation& e) {
  std::vector<std::string_view> allowed;
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
    if (e.choice.protocols.allowed.has(protocol)) allowed.push_back(name_of(protocol));
  const std::string_view by = e.choice.protocols.rule;
  if (e.query.network && by.empty()) return "frames of a socket, without protocols";
  return fmt::format("{}{} ({})", fmt::join(allowed, ", "),
                     e.query.network ? " as the length of pieces" : "",
                     by.empty() ? "by the size of what is published" : by);
}

double sent_vectors(const Candidate& c) {
  return static_cast<double>(c.cost.sent) / std::max(1U, c.cost.of);
}

Json to_json(const Explanation& e) {
  Json rows = Json::array();
  for (const Candidate& c : e.candidates) {
    Json row{{"algorithm", id(*c.algorithm)}, {"possible", c.possible}};
    if (c.possible)
      row.update({{"rounds", c.cost.rounds},
                  {"sent", sent_vectors(c)},
                  {"roundings", c.cost.roundings},
                  {"predicted_us", c.predicted_us}});
    row["measured_us"] = c.measured_us ? Json(*c.measured_us) : Json(nullptr);
    row["chosen"] = c.algorithm == e.choice.algorithm;
    row["why"] = reason_for(e, c);
    rows.push_back(std::move(row));
  }
  const TunerQuery& q = e.query;
  return {{"collective", name(q.shape.collective)},
          {"bytes", q.bytes},
          {"ranks", q.shape.size},
          {"network", q.network},
          {"ranks_per_core", q.ranks_per_core},
          {"level", e.level},
          {"chosen", id(*e.choice.algorithm)},
          {"reason", e.reason},
          {"tile_bytes", e.choice.tile_bytes},
          {"protocols", protocol_text(e)},
          {"candidates", std::move(rows)}};
}

std::string to_text(const Explanation& e) {
  const TunerQuery& q = e.query;
  std::string text = fmt::format(
      "{} of {} bytes on {} ranks{}, {}{}: {}\n{}, {} bytes at a time\nprotocol: {}\n\n"
      "  {:<24}{:>7}{:>8}{:>11}{:>14}{:>13}  why\n",
      name(q.shape.collective), q.bytes, q.shape.size,
      q.ranks_per_core > 1 ? fmt::format(", {} per core", q.ranks_per_core) : "",
      q.network ? "over a network" : "inside a host",
      e.level == kLevelOfRuns ? "" : fmt::format(", level {}", e.level), e.choice.algorithm->name,
      e.reason, e.choice.tile_bytes, protocol_text(e), "algorithm", "rounds", "sent", "roundings",
      "predicted us", "measured us");
  for (const Candidate& c : e.candidates) {
    const char mark = c.algorithm == e.choice.algorithm ? '*' : ' ';
    const std::string measured = c.measured_us ? fmt::format("{:.2f}", *c.measured_us) : "-";
    text += c.possible
                ? fmt::format("{} {:<24}{:>7}{:>8.2f}{:>11}{:>14.2f}{:>13}  {}\n", mark,
                              c.algorithm->name, c.cost.rounds, sent_vectors(c), c.cost.roundings,
                              c.predicted_us, measured, reason_for(e, c))
                : fmt::format("{} {:<24}{:>7}{:>8}{:>11}{:>14}{:>13}  {}\n", mark,
                              c.algorithm->name, "-", "-", "-", "-", measured, reason_for(e, c));
  }
  return text;
}

int run(const Flags& flags) {
  const Result<Explanation> explanation = explain(flags);
  if (!explanation.ok()) {
    fmt::print(stderr, "anyccl: explain: {}\n", explanation.status().message());
    return explanation.status().code() == Code::invalid_argument ? kUsageError : 1;
  }
  if (flags.json)
    fmt::print("{}\n", to_json(*explanation).dump(1));
  else
    fmt::print("{}", to_text(*explanation));
  return 0;
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("collective", flags->collective, "Collective, such as all_reduce")
      ->required()
      ->check(CLI::IsMember(collective_names()));
  app.add_option("-b,--bytes", flags->bytes,
                 "Size of the vector, or of one block; suffixes K, M and G")
      ->capture_default_str();
  app.add_option("-n,--ranks", flags->ranks, "Number of ranks")
      ->capture_default_str()
      ->check(CLI::Range(1, 128));
  app.add_option("--root", flags->root, "Root, for collectives with a root")->capture_default_str();
  app.add_option("--hosts", flags->hosts, "Ranks on each host, as 2,2; default: one host")
      ->delimiter(',');
  app.add_option("--near", flags->near, "Ranks at each cache or memory node of the host, as 8,8")
      ->delimiter(',')
      ->excludes("--hosts");
  app.add_option("--cores", flags->cores, "Cores of each host; default: those of this one")
      ->check(CLI::PositiveNumber);
  app.add_option("--transport", flags->transport, "shm or tcp")
      ->capture_default_str()
      ->check(CLI::IsMember({"shm", "tcp"}));
  app.add_option("--table", flags->table,
                 "Table of measurements; default: ANYCCL_TUNER_TABLE, or this machine's");
  app.add_option("--algo", flags->algorithm,
                 "Algorithm to ask for, or rules such as ring@1M-,^flat; default: ANYCCL_ALGO");
  app.add_option(
      "--proto", flags->protocol,
      "Protocol to ask for, or rules such as LL128@-8K,Simple@8K-; default: ANYCCL_PROTO");
  app.add_option("--reproducible", flags->level,
                 "Level of reproducibility, 0 to 3; default: ANYCCL_REPRODUCIBLE")
      ->check(CLI::Range(0, kMostLevel));
  app.add_flag("--narrow", flags->narrow,
               "From level 2 on: of elements of 16 or 8 bits, which are rounded after each step");
  app.add_flag("--json", flags->json, "Print JSON");
  app.footer(
      "Shows which algorithm a call would use in this environment, the reason, and why not\n"
      "another. The algorithm that you name comes first, then the table (where the built-in\n"
      "choice takes a tenth longer than the fastest), then the built-in choice. Predictions are\n"
      "alpha * rounds + beta * bytes sent by the busiest rank; they ignore contention, and decide\n"
      "only where a rule or a level of reproducibility excludes the built-in choice.\n\n"
      "Protocols say where a publication lies in shared memory: LL in the cache line of its\n"
      "sequence word, LL128 in its slot, Simple in the staging ring or where the caller has it.\n"
      "Sockets have no such places: there a protocol only says how long pieces are.\n\n"
      "Example: anyccl perf all_reduce -g 4 --all-combinations --json mine.json\n"
      "         anyccl explain all_reduce -n 4 --bytes 64K --table mine.json");
  return [flags] { return run(*flags); };
}

}  // namespace

const Verb verb_explain{"explain", "Show which algorithm would be used, and why", declare};

}  // namespace anyccl::cli
