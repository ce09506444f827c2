#include "perf/tune.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/launchers.hpp"
#include "base/whole_file.hpp"
#include "calibrate/calibrate.hpp"
#include "calibrate/validation.hpp"
#include "framework/tuning/machine_table.hpp"
#include "launch/job.hpp"
#include "launch/own_command.hpp"
#include "perf/changes.hpp"
#include "perf/files.hpp"
#include "perf/start.hpp"
#include "platform/probe/host_facts.hpp"
#include "platform/probe/machine.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

struct Flags {
  std::vector<std::string> collectives;
  std::string first, last, output, part;  ///< Empty, and 0: the default.
  std::size_t factor = 0;
  TuneOptions options = {.seconds = 120};
  bool calibrate = false, validate = false;
  std::string over = "shm", rows, links_part;
};

/// A calibration comes from jobs of at most so many ranks.
constexpr int kFittedRanks = 4;

int report_tune_failure(const Status& status) {
  fmt::print(stderr, "anyccl: tune: {}\n", status.message());
  return status.code() == Code::invalid_argument ? kUsageError : 1;
}

/// The operations with several algorithms.
std::vector<const Operation*> tunable() {
  std::vector<const Operation*> found;
  for (const Operation& operation : operations())
    if (candidates_of(operation, 4).size() > 1) found.push_back(&operation);
  return found;
}

std::vector<std::string> tunable_names() {
  std::vector<std::string> names;
  for (const Operation* operation : tunable()) names.emplace_back(operation->name);
  return names;
}

/// Sets the flags of --validate where the user gave none: ranks that were fitted, and twice as
/// many. Always has slow algorithms measured to the end.
void use_defaults_of_validation(Flags& f) {
  if (f.collectives.empty()) f.collectives = {"all_reduce"};
  if (f.options.ranks.empty()) f.options.ranks = {2, kFittedRanks, 2 * kFittedRanks};
  if (f.first.empty()) f.first = "1K";
  if (f.last.empty()) f.last = "16M";
  if (f.factor == 0) f.factor = 16;
  f.options.compares_all = true;
}

/// Fills the options from the flags.
Status set_options(Flags& f) {
  TuneOptions& options = f.options;
  if (f.validate) use_defaults_of_validation(f);
  if (f.first.empty()) f.first = "8";
  if (f.last.empty()) f.last = "64M";
  if (f.factor == 0) f.factor = 8;
  for (const Operation* operation : tunable())
    if (f.collectives.empty() ||
        std::count(f.collectives.begin(), f.collectives.end(), std::string(operation->name)) > 0)
      options.operations.push_back(operation);
  for (const Operation* operation : options.operations)
    if (f.validate && !can_predict(operation->name))
      return error(Code::invalid_argument,
                   "--validate takes all_reduce, broadcast and reduce, not {}", operation->name);
  SizeRange range{.factor = f.factor};
  ANYCCL_TRY(range.first, parse_size(f.first));
  ANYCCL_TRY(range.last, parse_size(f.last));
  ANYCCL_TRY(options.sizes, sizes_in(range));
  if (options.sizes.back() < range.last) options.sizes.push_back(range.last);
  std::vector<int>& ranks = options.ranks;
  if (ranks.empty()) ranks = {2, 4, std::max(2, probe::host_facts().cores)};
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return {};
}

/// As one rank of a job; rank 0 leaves the rows in the file.
Status measure_part(const Flags& flags) {
  ANYCCL_TRY(Comm comm, Comm::join());
  const Result<std::vector<Row>> rows = tune(flags.options, comm);
  if (!rows.ok()) comm.abort();
  ANYCCL_CHECK(rows.status());
  return comm.rank() == 0 ? write_json(flags.part, *rows) : Status();
}

/// Starts this very command as `ranks` ranks; returns their exit code.
int run_part(const Flags& flags, std::vector<std::string> command, int ranks,
             const std::string& part) {
  command.insert(command.end(), {"--part", part});
  return run_job({.name = "anyccl tune",
                  .ranks = ranks,
                  .command = std::move(command),
                  .settings = default_settings(flags.over),
                  .prefix_output = false});
}

/// All jobs, one after the other. Returns 0, or the exit code of the one that failed.
Result<int> measure_rows(const Flags& flags, std::string& rows) {
  ANYCCL_TRY(const std::vector<std::string> command, own_command());
  ANYCCL_TRY(const TemporaryFolder folder, TemporaryFolder::create());
  std::vector<std::string> parts;
  for (const int ranks : flags.options.ranks) {
    parts.push_back(fmt::format("{}/{}.json", folder.path(), ranks));
    if (const int code = run_part(flags, command, ranks, parts.back()); code != 0) return code;
  }
  ANYCCL_TRY(rows, joined_json(parts));
  return 0;
}

Result<std::string> output_file(const Flags& flags, const Config& config) {
  const std::string file =
      flags.output.empty() ? machine_table_file(config.cache_folder) : flags.output;
  if (file.empty())
    return error(Code::invalid_argument,
                 "neither XDG_CACHE_HOME nor HOME is set: name a file with --output");
  return file;
}

/// Beside the table of `anyccl tune`.
Result<std::string> calibration_file(const Flags& flags, const Config& config) {
  ANYCCL_TRY(const std::string table, output_file(flags, config));
  return flags.output.empty()
             ? std::filesystem::path(table).replace_extension("model.json").string()
             : table;
}

Result<int> measure_all(const Flags& flags) {
  ANYCCL_TRY(const Config config, read_config());
  ANYCCL_CHECK(check_not_a_rank(config, "it"));
  ANYCCL_TRY(const std::string file, output_file(flags, config));
  ANYCCL_TRY(PendingFile pending, PendingFile::create(file));
  fmt::print("anyccl {} on {}\nabout {:g} s, {} ranks over shared memory, into {}\n",
             ANYCCL_VERSION_TEXT, describe(probe::this_machine()), flags.options.seconds,
             fmt::join(flags.options.ranks, ", "), file);
  std::fflush(stdout);
  std::string rows;
  ANYCCL_TRY(const int code, measure_rows(flags, rows));
  if (code != 0) {
    fmt::print(stderr, "anyccl: tune: stopped; nothing was written\n");
    return code;
  }
  ANYCCL_TRY(const std::string text, changes_table(flags.options, rows, file));
  ANYCCL_CHECK(pending.commit(rows));
  fmt::print("\n{}", text);
  if (flags.output.empty())
    fmt::print(
        "From now on programs on this machine choose by it, unless ANYCCL_TUNER_TABLE=none.\n");
  else
    fmt::print("Programs choose by it with ANYCCL_TUNER_TABLE={}\n", file);
  return 0;
}

/// Measures collectives, fits the factors of the calibration to them and writes it to `file` again.
/// Prints the times beside what it then predicts.
Result<int> validate(const Flags& flags, const std::string& file) {
  ANYCCL_TRY(const std::string text, read_whole_file(file));
  ANYCCL_TRY(Calibration calibration, read_calibration(text, file));
  Machine machine;
  machine.inside = machine.between = flags.over;
  if (calibration.find(flags.over) == nullptr)
    return error(Code::invalid_argument, "{} has no link {}", file, flags.over);
  machine.calibration = std::make_shared<const Calibration>(calibration);
  std::string rows;
  ANYCCL_TRY(const int code, measure_rows(flags, rows));
  if (code != 0) return code;
  ANYCCL_TRY(std::vector<Prediction> predictions, predict(rows, machine));
  const int cores = calibration.cores;
  calibration.factors_link = flags.over;
  calibration.factors = factors_of(predictions, 2, std::min(cores, kFittedRanks));
  calibration.factors_in_turns = factors_of(predictions, cores + 1, kFittedRanks);
  ANYCCL_CHECK(write_whole_file(file, to_json(calibration)));
  machine.calibration = std::make_shared<const Calibration>(std::move(calibration));
  ANYCCL_TRY(predictions, predict(rows, machine));
  fmt::print("\n{}", to_table(predictions, kFittedRanks));
  if (!flags.rows.empty()) ANYCCL_CHECK(write_whole_file(flags.rows, to_json(predictions)));
  return 0;
}

/// Measures the links of this job, if this process is a rank of one, or else of this machine, and
/// writes the calibration. Then validates it, if that is asked for.
Result<int> calibrate_all(const Flags& flags) {
  ANYCCL_TRY(const Config config, read_config());
  ANYCCL_TRY(const std::string file, calibration_file(flags, config));
  ANYCCL_TRY(const std::optional<PlaceInJob> place, find_place(config));
  if (place && flags.validate) ANYCCL_CHECK(check_not_a_rank(config, "--validate"));
  if (place) {
    ANYCCL_TRY(Comm comm, Comm::join());
    const Result<std::string> text = calibrate(file, &comm);
    if (!text.ok()) comm.abort();
    ANYCCL_CHECK(text.status());
    fmt::print("{}", *text);
    return 0;
  }
  ANYCCL_TRY(const std::string text, calibrate(file, nullptr));
  fmt::print("{}", text);
  std::fflush(stdout);
  return flags.validate ? validate(flags, file) : 0;
}

int run(Flags& flags) {
  if (!flags.links_part.empty()) {
    const Status status = calibrate_part(flags.links_part);
    return status.ok() ? 0 : report_tune_failure(status);
  }
  if (const Status status = set_options(flags); !status.ok()) return report_tune_failure(status);
  if (!flags.part.empty()) {
    const Status status = measure_part(flags);
    return status.ok() ? 0 : report_tune_failure(status);
  }
  const Result<int> code = flags.calibrate ? calibrate_all(flags) : measure_all(flags);
  return code.ok() ? *code : report_tune_failure(code.status());
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("collectives", flags->collectives,
                 "Collectives, such as all_reduce; default: all with several algorithms")
      ->check(CLI::IsMember(tunable_names()));
  app.add_option("-g,--ranks", flags->options.ranks,
                 "Numbers of ranks, as 2,8; default: 2, 4 and the number of cores")
      ->delimiter(',')
      ->check(CLI::Range(2, 1024));
  app.add_option("-s,--seconds", flags->options.seconds,
                 "Time limit of the table, or of --validate, in seconds")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("-b,--minbytes", flags->first, "Smallest size; suffixes K, M and G; default: 8");
  app.add_option("-e,--maxbytes", flags->last, "Largest size; default: 64M");
  app.add_option("-f,--stepfactor", flags->factor, "Factor between sizes; default: 8")
      ->check(CLI::PositiveNumber);
  app.add_option("-o,--output", flags->output,
                 "File to write; default: this machine's, which each start reads unless "
                 "ANYCCL_TUNER_TABLE is set; with --calibrate one beside it");
  app.add_option("--part", flags->part)->group("");  // this process is a rank, which writes there
  app.add_option("--links-part", flags->links_part)->group("");
  const auto calibrate = app.add_flag(
      "--calibrate", flags->calibrate,
      "Measure what messages, additions and copies take, for anyccl simulate --model FILE");
  const auto validate =
      app.add_flag("--validate", flags->validate,
                   "Then measure all_reduce on 2, 4 and 8 ranks, 1K to 16M by 16 unless flags say "
                   "otherwise, beside what the model predicts");
  app.add_option("--over", flags->over, "Transport of --validate: shm or tcp")
      ->capture_default_str()
      ->check(CLI::IsMember({"shm", "tcp"}));
  app.add_option("--rows", flags->rows, "Write what --validate measured and predicted, as JSON");
  validate->needs(calibrate);
  app.footer(
      "Measures the algorithms of each collective in turns and writes a table of their times,\n"
      "which replaces the last one. Programs of this user on this machine choose by it from their\n"
      "next start: where the built-in choice takes at least a tenth longer than the fastest, they\n"
      "use the fastest. The machine should be idle otherwise.\n\n"
      "--calibrate fits the constants of a model instead, to links between two ranks and four, "
      "over\n"
      "shared memory and TCP; as a rank of a job, to the links of this job, also between hosts.\n\n"
      "Example: anyccl tune\n"
      "         anyccl tune all_reduce --ranks 8 --seconds 20 --output mine.json\n"
      "         anyccl explain all_reduce -n 4 --bytes 64K\n"
      "         anyccl tune --calibrate --validate --output model.json\n"
      "         anyccl run --hosts a,b -n 2 -- anyccl tune --calibrate --output model.json");
  return [flags] { return run(*flags); };
}

}  // namespace

const Verb verb_tune{"tune", "Measure which algorithms are fastest on this machine, and use them",
                     declare};

}  // namespace anyccl::cli
