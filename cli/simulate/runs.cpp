#include "simulate/runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "draw/table.hpp"
#include "simulate/devices/device_replay.hpp"
#include "simulate/host_replay.hpp"
#include "simulate/read_network.hpp"
#include "simulate/simgrid.hpp"

namespace anyccl::cli {

namespace {

using Contest = std::tuple<Collective, std::size_t, int>;  // size and ranks

Contest contest_of(const SimulatedRun& run) {
  return {run.algorithm->collective, run.bytes, run.ranks};
}

std::map<Contest, const SimulatedRun*> fastest(std::span<const SimulatedRun> runs) {
  std::map<Contest, const SimulatedRun*> best;
  for (const SimulatedRun& run : runs) {
    const auto [at, added] = best.emplace(contest_of(run), &run);
    if (run.result.seconds < at->second->result.seconds) at->second = &run;
  }
  return best;
}

double most_link_bytes(const SimulatedRun& run) {
  const auto& bytes = run.result.link_bytes;
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

/// 1 for those that are as fast, also with times of 0.
double multiple(const SimulatedRun& run, const SimulatedRun& best) {
  return run.result.seconds == best.result.seconds ? 1 : run.result.seconds / best.result.seconds;
}

/// "1M", as the command line takes it.
std::string size_text(std::size_t bytes) {
  for (const auto& [suffix, unit] :
       {std::pair{"G", std::size_t{1} << 30}, std::pair{"M", std::size_t{1} << 20},
        std::pair{"K", std::size_t{1} << 10}})
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, suffix);
  return fmt::format("{}", bytes);
}

template <typename T>
std::vector<T> sorted_unique(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// Whether all ranks are on one host with shm, the calibration has memory rates, and SimGrid is not
/// asked for. Plans have rings and slots, which are those of shared memory.
bool can_replay_plans(const Algorithm& algorithm, int ranks, const SimulationSetting& setting) {
  const Machine& m = setting.machine;
  return m.calibration != nullptr && !m.calibration->memory_alone.empty() && m.inside == "shm" &&
         setting.ranks_per_host == 0 && !setting.by_simgrid &&
         HostPlans::can_plan(algorithm, ranks);
}

Status too_many(std::size_t messages) {
  return error(Code::invalid_argument, "{} messages are too many for a timeline: at most {}",
               messages, kMostLogged);
}

/// `messages`: of the schedules, each as a whole.
Result<std::vector<SimulatedRun>> simulate_plans(const Algorithm& algorithm, const Shape& shape,
                                                 std::span<const std::size_t> sizes,
                                                 const Network& network,
                                                 const SimulationSetting& setting,
                                                 std::uint64_t messages, ReplayLog* log) {
  ANYCCL_TRY(const HostPlans plans, HostPlans::of(algorithm, shape));
  std::vector<SimulatedRun> runs;
  for (const std::size_t bytes : sizes) {
    ANYCCL_TRY(ReplayResult result,
               replay_on_host(plans, setting.machine, bytes, setting.touches, log));
    if (log != nullptr && log->messages.size() > kMostLogged)
      return too_many(log->messages.size());  // a message has tiles
    result.messages = messages;
    result.link_bytes.resize(network.links().size());
    runs.push_back({&algorithm, network.text(), shape.size, bytes, std::move(result)});
  }
  return runs;
}

}  // namespace

namespace {

Result<std::vector<SimulatedRun>> simulate_devices(const Algorithm& algorithm, const Shape& shape,
                                                   std::span<const std::size_t> sizes,
                                                   const DeviceCosts& costs,
                                                   std::uint64_t messages) {
  std::vector<SimulatedRun> runs;
  for (const std::size_t bytes : sizes) {
    ANYCCL_TRY(ReplayResult result, replay_on_devices(algorithm, shape, costs, bytes));
    result.messages = messages;
    runs.push_back({&algorithm, "devices", shape.size, bytes, std::move(result)});
  }
  return runs;
}

}  // namespace

Result<std::vector<SimulatedRun>> simulate_sizes(const Algorithm& algorithm, int ranks,
                                                 std::span<const std::size_t> sizes,
                                                 const Network& network,
                                                 const SimulationSetting& setting, ReplayLog* log) {
  Shape shape{.collective = algorithm.collective, .size = ranks, .root = setting.root};
  for (int r = 0; setting.ranks_per_host > 0 && r < ranks; ++r)
    shape.host_of.push_back(r / setting.ranks_per_host);
  ANYCCL_TRY(const RankPrograms programs, RankPrograms::of(algorithm, shape));
  if (setting.machine.devices != nullptr)
    return simulate_devices(algorithm, shape, sizes, *setting.machine.devices, programs.messages());
  if (log != nullptr && programs.messages() > kMostLogged) return too_many(programs.messages());
  ANYCCL_TRY(const std::vector<std::uint32_t> place,
             read_placement(setting.placement, programs.ranks(), network.ends()));
  if (can_replay_plans(algorithm, ranks, setting))
    return simulate_plans(algorithm, shape, sizes, network, setting, programs.messages(), log);
  std::vector<SimulatedRun> runs;
  for (const std::size_t bytes : sizes) {
    const auto size = static_cast<double>(bytes);
    ANYCCL_TRY(ReplayResult result,
               setting.by_simgrid
                   ? replay_by_simgrid(programs, network, setting.machine, size, place)
                   : replay(programs, network, setting.machine, size, place,
                            static_cast<std::uint32_t>(setting.ranks_per_host), log));
    runs.push_back({&algorithm, network.text(), ranks, bytes, std::move(result)});
  }
  return runs;
}

namespace {

std::string describe_devices(const DeviceCosts& costs) {
  return fmt::format(
      "estimate; simulated, not measured: ranks with a device each on one host, in queues of "
      "these; a link {:g} GB/s each way, memory of a device {:g}; a copy begins in {:g} us, a "
      "kernel in {:g}, a word takes {:g}; the host needs {:g} us for a command, {:g} for other "
      "functions",
      costs.link_bytes_per_s / 1e9, costs.device_bytes_per_s / 1e9, costs.copy_s * 1e6,
      costs.kernel_s * 1e6, costs.word_s * 1e6, costs.call_s * 1e6, costs.small_call_s * 1e6);
}

}  // namespace

std::string describe(std::span<const SimulatedRun> runs, const SimulationSetting& setting) {
  const Machine& m = setting.machine;
  if (m.devices != nullptr) return describe_devices(*m.devices);
  const bool one_network = std::all_of(runs.begin(), runs.end(), [&](const SimulatedRun& run) {
    return run.network == runs[0].network;
  });
  const std::string where = fmt::format(
      "{}, ranks placed {}", one_network ? runs[0].network : setting.topology, setting.placement);
  if (m.calibration != nullptr) {
    const Calibration& c = *m.calibration;
    return fmt::format(
        "estimate; calibrated on {} on {}, the fit's residuals: {}; simulated, not measured: {}, "
        "{}; "
        "{} cores a host",
        c.host, c.date, c.residuals(), where,
        setting.ranks_per_host == 0 ? "all ranks on one host"
                                    : fmt::format("{} ranks a host", setting.ranks_per_host),
        c.cores);
  }
  const std::string additions = m.gamma_s_per_byte > 0
                                    ? fmt::format("additions {:g} GB/s", 1e-9 / m.gamma_s_per_byte)
                                    : "additions free";
  return fmt::format(
      "estimate; uncalibrated; simulated{}, not measured: {}; a message {:g} us + {:g} us a link, "
      "its "
      "sender {:g} us, a link {:g} GB/s, {}",
      setting.by_simgrid ? " by SimGrid" : "", where, m.alpha_s * 1e6, m.hop_s * 1e6,
      m.overhead_s * 1e6, m.bytes_per_s / 1e9, additions);
}

std::string to_table(std::span<const SimulatedRun> runs) {
  const auto best = fastest(runs);
  std::vector<Line> lines = {{"algorithm", "ranks", "bytes", "us", "of the fastest", "messages",
                              "MB of the busiest link"}};
  for (const SimulatedRun& run : runs)
    lines.push_back(
        {id(*run.algorithm), fmt::format("{}", run.ranks), size_text(run.bytes),
         fmt::format("{:.3f}", run.result.seconds * 1e6),
         fmt::format("x{:.2f}", multiple(run, *best.at(contest_of(run)))),
         fmt::format("{}", run.result.messages),
         run.result.link_bytes.empty() ? "-" : fmt::format("{:.3f}", most_link_bytes(run) / 1e6)});
  return table(lines);
}

std::string winner_map(std::span<const SimulatedRun> runs) {
  const auto best = fastest(runs);
  std::map<Collective, std::pair<std::vector<std::size_t>, std::vector<int>>> axes;
  for (const auto& [contest, run] : best) {
    axes[run->algorithm->collective].first.push_back(run->bytes);
    axes[run->algorithm->collective].second.push_back(run->ranks);
  }
  std::string text;
  for (const auto& [collective, axis] : axes) {
    const std::vector<int> ranks = sorted_unique(axis.second);
    std::vector<Line> lines = {{fmt::format("{}, bytes", name(collective))}};
    for (const int n : ranks) lines[0].push_back(fmt::format("{} ranks", n));
    for (const std::size_t bytes : sorted_unique(axis.first)) {
      lines.push_back({size_text(bytes)});
      for (const int n : ranks) {
        const auto winner = best.find({collective, bytes, n});
        lines.back().emplace_back(winner == best.end() ? "-" : winner->second->algorithm->name);
      }
    }
    text += (text.empty() ? "" : "\n") + table(lines);
  }
  return text;
}

std::string to_json(std::span<const SimulatedRun> runs, const SimulationSetting& setting) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const SimulatedRun& run : runs) {
    const auto& done = run.result.done;
    rows.push_back({{"algorithm", id(*run.algorithm)},
                    {"topology", run.network},
                    {"ranks", run.ranks},
                    {"bytes", run.bytes},
                    {"us", run.result.seconds * 1e6},
                    {"first_rank_done_us", *std::min_element(done.begin(), done.end()) * 1e6},
                    {"messages", run.result.messages},
                    {"busiest_link_bytes", most_link_bytes(run)}});
  }
  const Machine& m = setting.machine;
  if (m.devices != nullptr)
    return Json{{"simulated", true}, {"engine", "devices"}, {"rows", std::move(rows)}}.dump(1);
  Json machine = {{"hop_us", m.hop_s * 1e6}, {"GBps", m.bytes_per_s / 1e9}};
  if (m.calibration == nullptr) {
    machine["alpha_us"] = m.alpha_s * 1e6;
    machine["overhead_us"] = m.overhead_s * 1e6;
  }
  if (m.gamma_s_per_byte > 0) machine["reduce_GBps"] = 1e-9 / m.gamma_s_per_byte;
  const auto calibration = [&]() -> Json {
    if (m.calibration == nullptr) return nullptr;
    return {{"host", m.calibration->host},
            {"date", m.calibration->date},
            {"residuals", m.calibration->residuals()}};
  };
  const Json json = {{"simulated", true},
                     {"engine", setting.by_simgrid ? "simgrid" : "flows"},
                     {"calibration", calibration()},
                     {"placement", setting.placement},
                     {"machine", std::move(machine)},
                     {"rows", std::move(rows)}};
  return json.dump(1);
}

}  // namespace anyccl::cli
