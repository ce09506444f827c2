#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "algorithm/loaded/load.hpp"
#include "base/config.hpp"
#include "base/error.hpp"
#include "framework/tuning/plan_settings.hpp"
#include "perf/start.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

/// The flags as written.
struct Flags {
  std::string operation, type = "float", redop = "sum", in_place = "both";
  std::string first = "8", last = "64M", step = "0";
  std::size_t factor = 2;
  std::string transport, algorithm, algorithm_file, protocol;
  bool all_combinations = false;
  PerfOptions options;
  Ranks ranks;
};

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const Operation& operation : operations()) names.emplace_back(operation.name);
  return names;
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const TypeName& type : kTypes) names.emplace_back(type.name);
  for (const TypeName& type : kTypes) names.emplace_back(type.short_name);
  names.emplace_back("all");
  return names;
}

std::vector<std::string> redop_names() {
  std::vector<std::string> names;
  for (const RedopName& redop : kRedops) names.emplace_back(redop.name);
  names.emplace_back("all");
  return names;
}

void declare_what(CLI::App& app, Flags& f) {
  app.add_option("operation", f.operation, "Operation to measure")
      ->required()
      ->check(CLI::IsMember(operation_names()));
  app.add_option("-b,--minbytes", f.first, "Smallest size; suffixes K, M and G")
      ->capture_default_str();
  app.add_option("-e,--maxbytes", f.last, "Largest size")->capture_default_str();
  app.add_option("-i,--stepbytes", f.step, "Step between sizes in bytes; 0: use --stepfactor")
      ->capture_default_str();
  app.add_option("-f,--stepfactor", f.factor, "Factor between sizes")->capture_default_str();
  app.add_option("-o,--op", f.redop, "Reduction")
      ->capture_default_str()
      ->check(CLI::IsMember(redop_names()));
  app.add_option("-d,--datatype", f.type, "Element type")
      ->capture_default_str()
      ->check(CLI::IsMember(type_names()));
  app.add_option("-r,--root", f.options.root, "Root, for operations with a root")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--inplace", f.in_place, "0: out of place, 1: in place, both")
      ->capture_default_str()
      ->check(CLI::IsMember({"0", "1", "both"}));
}

void declare_how(CLI::App& app, Flags& f) {
  Protocol& protocol = f.options.protocol;
  app.add_option("-n,--iters", protocol.iterations,
                 "Timed calls; default: 0.25 s per row, at least 20 calls")
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("-w,--warmup_iters", protocol.warmups, "Untimed calls before the timed ones")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("-c,--check", protocol.check,
                 "Write and compare every element in every timed call; 0, or --touch 0: in one "
                 "only")
      ->capture_default_str();
  app.add_option("--touch", protocol.touch, "Between timed calls, write to inputs and read results")
      ->capture_default_str();
  app.add_option("-R,--local_register", f.options.arena,
                 "1: buffers from anycclMemAlloc, which peers read directly")
      ->capture_default_str();
  app.add_option(
         "--offset", f.options.offset,
         "Bytes from the beginning of a page to that of each buffer: 16 is malloc's and NumPy's")
      ->capture_default_str()
      ->check(CLI::Range(0, 4095));
  app.add_option("--json", f.options.json, "Write the rows to this file");
}

/// Declares the flags for the ranks, and for the transport, algorithm and protocol that they use.
void declare_where(CLI::App& app, Flags& f) {
  app.add_option("-g,--ranks", f.ranks.count,
                 "Number of ranks; default: those of the launcher, or 2")
      ->check(CLI::Range(1, 65536));
  app.add_flag("--threads", f.ranks.threads, "Run the ranks as threads of one process");
  app.add_option("--transport", f.transport, "Set ANYCCL_TRANSPORT for the ranks");
  auto* const algorithm =
      app.add_option("--algo", f.algorithm,
                     "Set ANYCCL_ALGO for the ranks: ring, or rules such as ring@1M-,^flat");
  app.add_option(
      "--algo-file", f.algorithm_file,
      "File with an algorithm of your own, or several as ANYCCL_ALGO_PATH has them; --algo "
      "names one of them, and without it they are used where they can be");
  auto* const protocol =
      app.add_option("--proto", f.protocol,
                     "Set ANYCCL_PROTO for the ranks: LL, LL128, Simple, or rules such as "
                     "LL128@-8K,Simple@8K-");
  app.add_flag("--all-combinations", f.all_combinations,
               "Measure each algorithm that supports the ranks with each protocol that it can be "
               "forced to use, one after the other")
      ->excludes(algorithm)
      ->excludes(protocol);
}

/// Flags of nccl-tests whose meaning is not here.
void refuse_others(CLI::App& app) {
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {"-t,--nthreads", "-g is the number of ranks, and --threads makes them threads"},
      {"-m,--agg_iters", "each call is timed alone, and 'loop' is calls back to back"},
      {"-z,--blocking", "calls without streams are blocking"},
      {"-a,--average", "the time of a call is that of its slowest rank"},
      {"-p,--parallel_init", "ranks are always created side by side"},
      {"-G,--cudagraph", "there are no graphs on host memory"},
      {"-T,--timeout", "ANYCCL_TIMEOUT limits the start, and calls that differ are errors at once"},
      {"-C,--report_cputime", "the thread that calls is the one that works"}};
  for (const auto& [flag, reason] : kOthers)
    app.add_option_function<std::string>(
           flag,
           [flag = std::string(flag), reason = std::string(reason)](const std::string&) {
             throw CLI::ValidationError(flag, "not here: " + reason);
           })
        ->group("");  // not in the help
}

/// Algorithms of --algo-file are known here, for --algo, and to the ranks. Without --algo or
/// --all-combinations, ANYCCL_ALGO of the ranks names them.
Status load_files(Flags& f) {
  if (f.algorithm_file.empty()) return {};
  ANYCCL_TRY(const auto loaded, load_algorithm_files(f.algorithm_file));
  std::string paths = value_now("ANYCCL_ALGO_PATH").value_or("");
  const bool has_them = (paths + ":").starts_with(f.algorithm_file + ":");  // a rank of this perf
  if (!has_them) paths = f.algorithm_file + (paths.empty() ? "" : ":") + paths;
  f.ranks.settings.emplace_back("ANYCCL_ALGO_PATH", std::move(paths));
  if (!f.algorithm.empty() || f.all_combinations) return {};
  for (const LoadedAlgorithm* one : loaded)
    f.algorithm += fmt::format("{}{}:{}", f.algorithm.empty() ? "" : ";",
                               name(one->text().collective), one->text().name);
  return {};
}

/// Fills the options and the settings of the ranks from the flags. Loads the files of --algo-file.
Status set_options(Flags& f) {
  PerfOptions& options = f.options;
  options.operation = find_operation(f.operation);
  SizeRange range{.factor = f.factor};
  for (const auto& [text, number] :
       {std::pair{&f.first, &range.first}, {&f.last, &range.last}, {&f.step, &range.step}}) {
    Result<std::size_t> size = parse_size(*text);
    if (!size.ok()) return size.status();
    *number = *size;
  }
  Result<std::vector<std::size_t>> sizes = sizes_in(range);
  if (!sizes.ok()) return sizes.status();
  options.sizes = *std::move(sizes);
  for (const TypeName& type : kTypes)
    if (f.type == "all" || f.type == type.name || f.type == type.short_name)
      options.types.push_back(type);
  for (const RedopName& redop : kRedops)
    if (f.redop == "all" || f.redop == redop.name) options.redops.push_back(redop);
  options.out_of_place = f.in_place != "1";
  options.in_place = f.in_place != "0";
  if (!options.out_of_place && !options.operation->in_place)
    return Status(Code::invalid_argument, f.operation + " cannot run in place");
  ANYCCL_CHECK(load_files(f));
  ANYCCL_CHECK(AlgorithmRules::parse(f.algorithm, "--algo").status());
  ANYCCL_CHECK(ProtocolRules::parse(f.protocol, "--proto").status());
  for (const auto& [name, value] : {std::pair{"ANYCCL_TRANSPORT", &f.transport},
                                    {"ANYCCL_ALGO", &f.algorithm},
                                    {"ANYCCL_PROTO", &f.protocol}})
    if (!value->empty()) f.ranks.settings.emplace_back(name, *value);
  return {};
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  declare_what(app, *flags);
  declare_how(app, *flags);
  declare_where(app, *flags);
  refuse_others(app);
  app.footer(
      "Starts its ranks itself, or is one of them under a launcher (anyccl run,\n"
      "torchrun, mpirun). Columns and bandwidths are those of nccl-tests. A call's time is that of "
      "its\n"
      "slowest rank; a row's time is the median over its calls. The exit code is 1 if a value\n"
      "was wrong.\n\n"
      "Protocols say where the largest publication of a call lies in shared memory: LL in the\n"
      "cache line of its sequence word, LL128 in its slot, Simple in the staging ring or where\n"
      "the caller has it. Over sockets there are none (-), but what --proto names still says how\n"
      "long pieces are.\n\n"
      "Example: anyccl perf all_reduce -g 4 -b 8 -e 16M --transport shm");
  return [flags] {
    if (const Status status = set_options(*flags); !status.ok()) {
      fmt::print(stderr, "anyccl: perf: {}\n", status.message());
      return kUsageError;
    }
    return flags->all_combinations ? run_all_combinations(flags->options, flags->ranks)
                                   : run_perf(flags->options, flags->ranks);
  };
}

}  // namespace

const Verb verb_perf{"perf", "Measure operations, with nccl-tests' flags and columns", declare};

}  // namespace anyccl::cli
