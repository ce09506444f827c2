#include "calibrate/links.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "perf/memory.hpp"
#include "perf/report.hpp"
#include "perf/statistics.hpp"
#include "platform/probe/host_facts.hpp"

namespace anyccl::cli {

namespace {

using Clock = std::chrono::steady_clock;

/// Several in each segment of protocol_limits().
constexpr std::size_t kPingSizes[] = {8,       32,      56,      256,     1024,     2048,
                                      8192,    16384,   32768,   65536,   131072,   262144,
                                      1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20};
constexpr std::size_t kMostPinged = 32 << 20;
constexpr int kRounds = 5;  // all sizes in turns, so that a disturbance meets them all

int exchanges(std::size_t bytes) {
  return static_cast<int>(std::clamp<std::size_t>((4 << 20) / bytes, 2, 60));
}

/// The two ranks of a communicator, which send the same bytes to and fro: each way is one
/// broadcast, so the path is the one of collectives.
class Pair {
 public:
  Pair(const Comm& comm, Memory memory) : comm_(comm), memory_(std::move(memory)) {}

  /// Appends the time of one way, for each exchange, in seconds.
  Status time_pings(std::size_t bytes, int times, std::vector<double>& seconds) const {
    ANYCCL_CHECK(send(0, bytes));
    ANYCCL_CHECK(send(1, bytes));
    for (int i = 0; i < times; ++i) {
      const Clock::time_point start = Clock::now();
      ANYCCL_CHECK(send(0, bytes));
      ANYCCL_CHECK(send(1, bytes));
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count() / 2);
    }
    return {};
  }

  /// The time of one of many messages of one sender: the overhead of the slower side.
  Result<double> measure_overhead_s() const {
    constexpr int kMessages = 256;
    ANYCCL_CHECK(comm_.barrier());
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kMessages; ++i) ANYCCL_CHECK(send(0, 8));
    std::int64_t ns = (Clock::now() - start) / std::chrono::nanoseconds(1);
    ANYCCL_CHECK(comm_.max({&ns, 1}));
    return static_cast<double>(ns) * 1e-9 / kMessages;
  }

  /// Returns the transport, such as "shm". Sends a message to find it, so both ranks call it.
  Result<std::string> link_name() const {
    ANYCCL_CHECK(send(0, 8));
    ANYCCL_TRY(const std::string plan, comm_.last_plan());
    const std::string transport = split_plan(plan).transport;  // such as "tcp/cubic"
    return transport.substr(0, transport.find('/'));
  }

 private:
  Status send(int root, std::size_t bytes) const {
    return comm_.check(anycclBroadcast(memory_.get(), memory_.get(), bytes, anycclInt8, root,
                                       comm_.get(), nullptr),
                       "anycclBroadcast");
  }

  const Comm& comm_;
  const Memory memory_;
};

SpreadTiming spread_of(std::size_t bytes, const std::vector<double>& seconds) {
  SpreadTiming timing;
  timing.bytes = static_cast<double>(bytes);
  timing.seconds = quantile(seconds, 0.1);
  timing.median_s = quantile(seconds, 0.5);
  timing.high_s = quantile(seconds, 0.9);
  return timing;
}

Result<LinkTimings> measure_pair(const Comm& comm) {
  ANYCCL_TRY(Memory memory, Memory::allocate(kMostPinged, false));
  const Pair pair(comm, std::move(memory));
  LinkTimings timings;
  ANYCCL_TRY(timings.link, pair.link_name());
  std::vector<std::vector<double>> seconds(std::size(kPingSizes));
  std::vector<double> overheads;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < std::size(kPingSizes); ++i)
      ANYCCL_CHECK(pair.time_pings(kPingSizes[i], exchanges(kPingSizes[i]), seconds[i]));
    ANYCCL_TRY(const double overhead_s, pair.measure_overhead_s());
    overheads.push_back(overhead_s);
  }
  for (std::size_t i = 0; i < std::size(kPingSizes); ++i)
    timings.pings.push_back(spread_of(kPingSizes[i], seconds[i]));
  timings.overhead_s = spread_of(8, overheads).seconds;
  return timings;
}

/// Measures one way of 8 bytes; both ranks call it. Sets only `link` and `all_at_once_s`.
Result<LinkTimings> measure_beside_others(const Comm& pair_comm) {
  ANYCCL_TRY(Memory memory, Memory::allocate(4096, false));
  const Pair pair(pair_comm, std::move(memory));
  LinkTimings timings;
  ANYCCL_TRY(timings.link, pair.link_name());
  std::vector<double> seconds;
  ANYCCL_CHECK(pair.time_pings(8, 500, seconds));
  timings.all_at_once_s = spread_of(8, seconds).seconds;
  return timings;
}

/// A number for the host of each rank.
Result<std::vector<std::int64_t>> hosts_of(const Comm& comm) {
  const probe::HostFacts facts = probe::host_facts();
  const std::size_t hash = std::hash<std::string>()(
      fmt::format("{} {} {}", facts.boot_id, facts.hostname, facts.network_namespace));
  std::vector<std::int64_t> hosts(static_cast<std::size_t>(comm.ranks()));
  hosts[static_cast<std::size_t>(comm.rank())] = static_cast<std::int64_t>(hash >> 1);
  ANYCCL_CHECK(comm.sum(hosts));
  return hosts;
}

/// Rank 0 and `other` measure; the others wait.
Status add_pair(const Comm& comm, int other, std::vector<LinkTimings>& timings) {
  ANYCCL_TRY(const std::optional<Comm> pair,
             comm.split(comm.rank() == 0 || comm.rank() == other ? 0 : -1));
  if (pair) {
    ANYCCL_TRY(LinkTimings more, measure_pair(*pair));
    timings.push_back(std::move(more));
  }
  return comm.barrier();
}

}  // namespace

Result<std::vector<LinkTimings>> measure_links(const Comm& comm) {
  ANYCCL_TRY(const std::vector<std::int64_t> hosts, hosts_of(comm));
  std::vector<LinkTimings> timings;
  const auto first = [&](bool same_host) {
    for (int r = 1; r < comm.ranks(); ++r)
      if ((hosts[static_cast<std::size_t>(r)] == hosts[0]) == same_host) return r;
    return 0;
  };
  const int near = first(true), far = first(false);
  if (near > 0) ANYCCL_CHECK(add_pair(comm, near, timings));
  if (far > 0) ANYCCL_CHECK(add_pair(comm, far, timings));
  if (far == 0 && comm.ranks() >= 4) {
    ANYCCL_TRY(LinkTimings more, measure_all_pairs(comm));
    timings.push_back(std::move(more));
  }
  return timings;
}

Result<LinkTimings> measure_all_pairs(const Comm& comm) {
  const bool odd = comm.ranks() % 2 == 1 && comm.rank() + 1 == comm.ranks();
  ANYCCL_TRY(const std::optional<Comm> pair, comm.split(odd ? -1 : comm.rank() / 2));
  LinkTimings timings;
  if (pair) {
    ANYCCL_TRY(timings, measure_beside_others(*pair));
  }
  ANYCCL_CHECK(comm.barrier());
  return timings;
}

Status write_timings(const std::string& file, const std::vector<LinkTimings>& timings) {
  nlohmann::json json = nlohmann::json::array();
  for (const LinkTimings& t : timings) {
    nlohmann::json pings = nlohmann::json::array();
    for (const SpreadTiming& p : t.pings)
      pings.push_back({p.bytes, p.seconds, p.median_s, p.high_s});
    json.push_back({{"link", t.link},
                    {"pings", std::move(pings)},
                    {"overhead_s", t.overhead_s},
                    {"all_at_once_s", t.all_at_once_s}});
  }
  return write_whole_file(file, json.dump());
}

Result<std::vector<LinkTimings>> read_timings(const std::string& file) {
  ANYCCL_TRY(const std::string text, read_whole_file(file));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_array()) return error(Code::system_error, "{} holds no timings", file);
  std::vector<LinkTimings> timings;
  for (const auto& t : json) {
    LinkTimings& link = timings.emplace_back();
    link.link = t.at("link").get<std::string>();
    link.overhead_s = t.at("overhead_s").get<double>();
    link.all_at_once_s = t.at("all_at_once_s").get<double>();
    for (const auto& p : t.at("pings")) {
      SpreadTiming& ping = link.pings.emplace_back();
      ping.bytes = p.at(0).get<double>();
      ping.seconds = p.at(1).get<double>();
      ping.median_s = p.at(2).get<double>();
      ping.high_s = p.at(3).get<double>();
    }
  }
  return timings;
}

}  // namespace anyccl::cli
