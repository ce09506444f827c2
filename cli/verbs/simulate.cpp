#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iterator>
#include <memory>
#include <utility>

#include "algorithms_named.hpp"
#include "base/byte_size.hpp"
#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "simulate/link_loads.hpp"
#include "simulate/read_network.hpp"
#include "simulate/runs.hpp"
#include "simulate/timeline.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

struct Flags {
  std::string what, topology = "flat", placement = "linear", svg, timeline;
  struct {
    std::string machine, model, devices;
  } file;
  std::string inside, engine = "flows";
  std::vector<int> ranks = {64};
  std::vector<std::string> bytes = {"1M"};
  double alpha_us = -1, hop_us = -1, overhead_us = -1, gb_per_s = -1,
         reduce_gb_per_s = -1;  ///< Below 0: not given.
  int ranks_per_host = 0, root = 0;
  bool links = false, winners = false, json = false;
};

/// Takes --machine and the flags of single constants; use_calibration() adds --model.
Result<Machine> machine_of(const Flags& flags) {
  Machine machine;
  if (!flags.file.machine.empty()) {
    ANYCCL_TRY(const std::string text, read_whole_file(flags.file.machine));
    ANYCCL_TRY(machine, read_machine(text, flags.file.machine));
  }
  if (flags.alpha_us >= 0) machine.alpha_s = flags.alpha_us * 1e-6;
  if (flags.hop_us >= 0) machine.hop_s = flags.hop_us * 1e-6;
  if (flags.overhead_us >= 0) machine.overhead_s = flags.overhead_us * 1e-6;
  if (flags.gb_per_s >= 0) machine.bytes_per_s = flags.gb_per_s * 1e9;
  if (flags.reduce_gb_per_s >= 0) machine.gamma_s_per_byte = 1e-9 / flags.reduce_gb_per_s;
  return machine;
}

/// Returns the name of a link of the calibration: the one that is asked for, or else the usual one,
/// or the first one.
Result<std::string> link_of(const Flags& flags, const Calibration& calibration,
                            const std::string& asked, const std::string& usual) {
  const std::string link = !asked.empty()            ? asked
                           : calibration.find(usual) ? usual
                                                     : calibration.links[0].name;
  if (calibration.find(link) != nullptr) return link;
  std::string known;
  for (const LinkCosts& l : calibration.links) known += (known.empty() ? "" : ", ") + l.name;
  return error(Code::invalid_argument, "{} has no link {}, but {}", flags.file.model, link, known);
}

/// Takes links, and the bandwidth unless --bandwidth is given, from the file of --model, if any.
Status use_calibration(const Flags& flags, Machine& machine) {
  if (flags.file.model.empty()) {
    if (flags.inside.empty()) return {};
    return error(Code::invalid_argument, "--inside names a link of --model, and there is none");
  }
  ANYCCL_TRY(const std::string text, read_whole_file(flags.file.model));
  ANYCCL_TRY(Calibration calibration, read_calibration(text, flags.file.model));
  ANYCCL_TRY(machine.inside, link_of(flags, calibration, flags.inside, "shm"));
  ANYCCL_TRY(machine.between, link_of(flags, calibration, "", "tcp"));
  const CostSegment& largest = calibration.find(machine.between)->segments.back();
  if (flags.gb_per_s < 0 && largest.beta_s > 0) machine.bytes_per_s = 1 / largest.beta_s;
  machine.calibration = std::make_shared<const Calibration>(std::move(calibration));
  return {};
}

bool wants_one_run(const Flags& flags) {
  return flags.links || !flags.svg.empty() || !flags.timeline.empty();
}

/// Takes --devices; null: it is not given.
Result<std::shared_ptr<const DeviceCosts>> devices_of(const Flags& flags) {
  if (flags.file.devices.empty()) return std::shared_ptr<const DeviceCosts>();
  if (wants_one_run(flags))
    return error(Code::invalid_argument,
                 "--devices gives times alone: leave --links, --svg and --timeline out");
  if (flags.file.devices == "model") return std::make_shared<const DeviceCosts>();
  ANYCCL_TRY(const std::string text, read_whole_file(flags.file.devices));
  ANYCCL_TRY(const DeviceCosts costs, read_device_costs(text, flags.file.devices));
  return std::make_shared<const DeviceCosts>(costs);
}

/// Reads the files of the machine, the calibration and the topology that the flags name.
Result<SimulationSetting> setting_of(const Flags& flags) {
  SimulationSetting setting;
  ANYCCL_TRY(setting.machine, machine_of(flags));
  ANYCCL_CHECK(use_calibration(flags, setting.machine));
  ANYCCL_TRY(setting.machine.devices, devices_of(flags));
  setting.topology = flags.topology;
  if (flags.topology.ends_with(".json")) {
    ANYCCL_TRY(setting.topology, read_whole_file(flags.topology));
  }
  setting.placement = flags.placement;
  setting.by_simgrid = flags.engine == "simgrid";
  if (setting.by_simgrid && wants_one_run(flags))
    return error(Code::invalid_argument,
                 "--engine simgrid gives times alone: leave --links, --svg and --timeline out");
  setting.ranks_per_host = flags.ranks_per_host;
  setting.root = Rank{flags.root};
  return setting;
}

/// Reads the sizes of --bytes, in the order given.
Result<std::vector<std::size_t>> sizes_of(const Flags& flags) {
  std::vector<std::size_t> sizes;
  for (const std::string& text : flags.bytes) {
    ANYCCL_TRY(const std::size_t size, parse_size(text));
    sizes.push_back(size);
  }
  return sizes;
}

Status check_root(const Flags& flags) {
  for (const int ranks : flags.ranks)
    if (flags.root >= ranks)
      return error(Code::invalid_argument, "--root {} is not one of {} ranks", flags.root, ranks);
  return {};
}

/// Simulates the algorithms for each number of ranks of the flags. Leaves out those of several
/// algorithms that do not support one; for a single algorithm that is an error.
Result<std::vector<SimulatedRun>> all_runs(const Flags& flags,
                                           const std::vector<const Algorithm*>& algorithms,
                                           const SimulationSetting& setting) {
  ANYCCL_TRY(const std::vector<std::size_t> sizes, sizes_of(flags));
  std::vector<SimulatedRun> runs;
  for (const int ranks : flags.ranks) {
    ANYCCL_TRY(const Network network,
               read_network(setting.topology, static_cast<std::uint32_t>(ranks)));
    for (const Algorithm* algorithm : algorithms) {
      if (algorithms.size() > 1 && !algorithm->supports({algorithm->collective, ranks})) continue;
      ANYCCL_TRY(std::vector<SimulatedRun> more,
                 simulate_sizes(*algorithm, ranks, sizes, network, setting));
      std::move(more.begin(), more.end(), std::back_inserter(runs));
    }
  }
  if (runs.empty())
    return error(Code::invalid_argument, "none of '{}' supports {} ranks", flags.what,
                 fmt::join(flags.ranks, " or "));
  return runs;
}

/// Simulates all that the flags ask for, and prints the results as text or JSON.
Status print_table(const Flags& flags, const SimulationSetting& setting) {
  ANYCCL_TRY(const std::vector<const Algorithm*> algorithms, algorithms_named(flags.what));
  ANYCCL_TRY(const std::vector<SimulatedRun> runs, all_runs(flags, algorithms, setting));
  if (flags.json)
    fmt::print("{}\n", to_json(runs, setting));
  else
    fmt::print("# {}\n{}", describe(runs, setting),
               flags.winners ? winner_map(runs) : to_table(runs));
  return {};
}

/// The files and tables that are of one run.
Status print_one(const Flags& flags, const SimulationSetting& setting) {
  ANYCCL_TRY(const Algorithm* algorithm, algorithm_named(flags.what));
  ANYCCL_TRY(const std::vector<std::size_t> sizes, sizes_of(flags));
  if (flags.ranks.size() != 1 || sizes.size() != 1)
    return error(Code::invalid_argument,
                 "--links, --svg and --timeline are of one size and number of ranks");
  const auto ranks = static_cast<std::uint32_t>(flags.ranks[0]);
  ANYCCL_TRY(const Network network, read_network(setting.topology, ranks));
  ReplayLog log;
  ANYCCL_TRY(const std::vector<SimulatedRun> runs,
             simulate_sizes(*algorithm, flags.ranks[0], sizes, network, setting,
                            flags.timeline.empty() ? nullptr : &log));
  if (!flags.timeline.empty())
    ANYCCL_CHECK(write_whole_file(flags.timeline, timeline(log, ranks, id(*algorithm))));
  if (!flags.svg.empty()) {
    ANYCCL_TRY(const std::string picture, network_svg(network, &runs[0].result));
    ANYCCL_CHECK(write_whole_file(flags.svg, picture));
  }
  if (flags.json)
    fmt::print("{}\n", to_json(runs, setting));
  else
    fmt::print("# {}\n{}", describe(runs, setting), to_table(runs));
  if (flags.links) fmt::print("\n{}", link_loads(network, setting.machine, runs[0].result));
  return {};
}

/// Prints the network for the first number of ranks, and draws it into the file of --svg.
Status print_topology(const Flags& flags, const SimulationSetting& setting) {
  ANYCCL_TRY(const Network network,
             read_network(setting.topology, static_cast<std::uint32_t>(flags.ranks[0])));
  if (!flags.svg.empty()) {
    ANYCCL_TRY(const std::string picture, network_svg(network, nullptr));
    ANYCCL_CHECK(write_whole_file(flags.svg, picture));
  }
  if (flags.json)
    fmt::print("{}\n", to_json(network));
  else
    fmt::print("{}", network_text(network));
  return {};
}

Status simulate(const Flags& flags) {
  ANYCCL_CHECK(check_root(flags));
  ANYCCL_TRY(const SimulationSetting setting, setting_of(flags));
  if (flags.what == "topology") return print_topology(flags, setting);
  return wants_one_run(flags) ? print_one(flags, setting) : print_table(flags, setting);
}

int run(const Flags& flags) {
  const Status status = simulate(flags);
  if (status.ok()) return 0;
  fmt::print(stderr, "anyccl: simulate: {}\n", status.message());
  return status.code() == Code::invalid_argument ? kUsageError : 1;
}

void declare_machine(CLI::App& app, Flags& flags) {
  const auto machine = app.add_option(
      "--machine", flags.file.machine,
      "Read the constants of the machine from this file (JSON); flags take precedence");
  const auto model =
      app.add_option("--model", flags.file.model,
                     "Take the constants from this file of anyccl tune --calibrate instead");
  app.add_option("--inside", flags.inside,
                 "Its link between ranks of a host; default: shm, or else the first of the file. "
                 "Between hosts it is tcp, or else that one");
  const auto alpha =
      app.add_option("--alpha", flags.alpha_us, "What a message costs, in us; default: 5")
          ->check(CLI::NonNegativeNumber);
  app.add_option("--hop", flags.hop_us, "What each link of its route adds, in us; default: 0")
      ->check(CLI::NonNegativeNumber);
  const auto overhead =
      app.add_option("--overhead", flags.overhead_us,
                     "How long each message occupies its sender, in us; default: 0")
          ->check(CLI::NonNegativeNumber);
  app.add_option("--bandwidth", flags.gb_per_s, "Of a link, in GB/s (1e9); default: 25")
      ->check(CLI::PositiveNumber);
  const auto reduce =
      app.add_option("--reduce", flags.reduce_gb_per_s,
                     "How fast a rank adds, in GB/s; default: additions take no time")
          ->check(CLI::PositiveNumber);
  const auto devices = app.add_option(
      "--devices", flags.file.devices,
      "Each rank has a device, and calls are in queues of these: the constants of this file "
      "(JSON), or with model those of the simulated driver, see docs/devices.md");
  for (CLI::Option* option : {machine, alpha, overhead, reduce}) model->excludes(option);
  for (CLI::Option* option : {machine, model, alpha, overhead, reduce}) devices->excludes(option);
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("what", flags->what,
                 "all_reduce/ring, a collective, an algorithm of each, all, or topology")
      ->required();
  app.add_option("-n,--ranks", flags->ranks, "Numbers of ranks, as 8,64; default: 64")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("-b,--bytes", flags->bytes,
                 "Sizes of the vector, or of one block; suffixes K, M and G; default: 1M")
      ->delimiter(',');
  app.add_option("--topology", flags->topology,
                 "What connects the ranks, as torus or torus:dims=4x4, or a file .json; kinds: " +
                     network_kinds())
      ->capture_default_str();
  app.add_option("--placement", flags->placement, "linear, or random:SEED")->capture_default_str();
  declare_machine(app, *flags);
  app.add_option("--ranks-per-host", flags->ranks_per_host,
                 "Ranks on each host, for algorithms of several levels; default: one host")
      ->check(CLI::PositiveNumber);
  app.add_option("--engine", flags->engine,
                 "flows: that of anyccl; simgrid: by SimGrid, which gives to others what a flow "
                 "leaves over, for up to 4096 ranks")
      ->capture_default_str()
      ->check(CLI::IsMember({"flows", "simgrid"}));
  app.add_option("--root", flags->root, "Root, for collectives with a root")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--winners", flags->winners,
               "Print the fastest algorithm for each size and number of ranks");
  app.add_flag("--links", flags->links, "Print what links carry");
  app.add_option("--svg", flags->svg, "Draw the network and what it carries into this file");
  app.add_option("--timeline", flags->timeline,
                 "Write what each rank does when into this file, for ui.perfetto.dev");
  app.add_flag("--json", flags->json, "Print JSON")->excludes("--winners")->excludes("--links");
  app.footer(
      "Replays the schedules that would run on a model of many ranks and their network. Nothing "
      "is\n"
      "measured: the constants are yours, those of the course, or --model's. topology shows the "
      "network "
      "alone.\n\n"
      "Example: anyccl simulate all_reduce -n 64 -b 1K,1M --topology fat-tree:k=8,taper=4\n"
      "         anyccl simulate all_reduce -n 8,64,512 -b 1K,1M,64M --overhead 1 --winners\n"
      "         anyccl simulate all_reduce/ring -n 16 --topology torus:dims=4x4 --links --svg "
      "a.svg");
  return [flags] { return run(*flags); };
}

}  // namespace

const Verb verb_simulate{
    "simulate", "Predict an algorithm on many ranks and a network, by replaying its schedule",
    declare};

}  // namespace anyccl::cli
