#include "base/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "base/byte_size.hpp"
#include "base/error.hpp"
#include "base/launchers.hpp"
#include "base/log.hpp"
#include "base/verify_limits.hpp"

extern char** environ;

namespace anyccl {
namespace {

/// The name of `choice`, whose value 0 means that nothing is chosen.
template <typename Choice>
std::string name_in(std::span<const std::string_view> names, Choice choice) {
  const auto value = static_cast<std::size_t>(choice);
  return value == 0 ? "" : std::string(names[value - 1]);
}

std::string size_text(std::size_t bytes) {
  return bytes == 0 ? "" : std::to_string(bytes);
}

/// As read_verify() reads it; empty: nothing is verified.
std::string verify_text(const Config& config) {
  const auto [each, later] = config.verify;
  if (each == 0) return "";
  return (each == 1 ? "all" : fmt::format("1/{}", each)) + (later ? ",late" : "");
}

constexpr Variable kVariables[] = {
    {"ANYCCL_ALGO", "",
     "algorithm to use, or several by collective and size: all_reduce:ring@1M-;broadcast:^flat",
     [](const Config& c) { return c.algo; }},
    {"ANYCCL_ALGO_PATH", "",
     "files with algorithms of your own, or folders with such *.json, as "
     "mine.json:/opt/algorithms"},
    {"ANYCCL_PROTO", "",
     "LL (beside the word, in its cache line), LL128 (beside it, in its slot) or Simple (staging "
     "ring), or several: all_reduce:LL128@-8K,Simple@8K-;broadcast:^LL. Where there is no shared "
     "memory they only say how long pieces are",
     [](const Config& c) { return c.proto; }},
    {"ANYCCL_CHUNK_SIZE", "",
     "bytes of the tiles in which a vector or block goes, at most: 4K to 1G",
     [](const Config& c) { return size_text(c.chunk_bytes); }},
    {"ANYCCL_BUFFSIZE", "1M to 4M",
     "bytes of each rank's staging ring, 64K to 1G, and at least 12K for each rank up to 1M; the "
     "default depends on ranks and hosts",
     [](const Config& c) { return size_text(c.buffer_bytes); }},
    {"ANYCCL_TUNER_TABLE", "what `anyccl tune` has written",
     "file of measurements to choose algorithms by; none: no file",
     [](const Config& c) { return c.tuner_table; }},
    {"ANYCCL_REPRODUCIBLE", "1",
     "level of reproducibility of sums. 2: the same bits whatever algorithm, size of call, root or "
     "group; 3: also wherever ranks run. 0: nothing is promised",
     [](const Config& c) {
       return c.reproducible < 0 ? std::string() : std::to_string(c.reproducible);
     }},
    {"ANYCCL_VERIFY", "off",
     "all: results of collectives are verified; 1/N: of each N-th; with \",late\" behind it calls "
     "do not wait for that. See docs/numbers/verification.md",
     [](const Config& c) { return verify_text(c); }},
    {"ANYCCL_FUSION", "1", "0: small collectives of a group do not travel as one",
     [](const Config& c) { return std::string(c.fuses ? "" : "0"); }},
    {"ANYCCL_DEVICE_QUEUES", "0",
     "1: collectives in memory of devices run in queues of these, where all ranks have them",
     [](const Config& c) { return std::string(c.device_queues ? "1" : ""); }},
    {"ANYCCL_TRANSPORT", "", "name of the one transport to use (see `anyccl info`)",
     [](const Config& c) { return c.transport; }},
    {"ANYCCL_SHM_COPY", "", "staged, cma or window: where shared memory's large publications lie",
     [](const Config& c) { return name_in(kCopyNames, c.shm_copy); }},
    {"ANYCCL_WAIT", "balanced",
     "latency: threads that wait never sleep; thrift: they sleep after 20 us"},
    {"ANYCCL_HOSTID", "", "ranks with different ids count as on different hosts"},
    {"ANYCCL_SOCKET_IFNAME", "",
     "network interfaces: prefixes, comma separated; ^ excludes, = is exact"},
    {"ANYCCL_TCP_ACK_TIMEOUT", "30",
     "seconds after which a host that acknowledges nothing counts as cut off or powered off: 1 to "
     "600"},
    {"ANYCCL_CHECKSUM", "0",
     "1: what goes over connections has checksums and numbers, so that damaged, lost or repeated "
     "data is an error that names the rank",
     [](const Config& c) { return std::string(c.checksums ? "1" : ""); }},
    {"ANYCCL_CHAOS", "",
     "for tests, faults of connections, and delays also of shared memory: "
     "seed=1,delay=0.01:200us,partial=0.1,reorder=0.01,drop=1e-4,"
     "duplicate=1e-4,cut=1e-7,corrupt=1e-7,slow=10M; die=3: the process kills itself"},
    {"ANYCCL_TLS", "0",
     "1: TCP connections between ranks are encrypted and authenticated by TLS 1.3, with keys from "
     "the secret of the job",
     [](const Config& c) { return std::string(c.tls ? "1" : ""); }},
    {"ANYCCL_RECONNECT", "0",
     "seconds for which ranks try to replace a TCP connection that is lost, and then go on with "
     "what "
     "was under way; 0: it is an error",
     [](const Config& c) { return std::string(c.reconnect_s > 0 ? "1" : ""); }},
    {"ANYCCL_SECRET", "", "32 hex digits that every rank of a job must know; `anyccl run` sets it"},
    {"ANYCCL_PORT", "MASTER_PORT + 1", "port on MASTER_ADDR where rank 0 meets the others"},
    {"ANYCCL_PORT_RANGE", "",
     "ports at which ranks listen, as 40000-40999; default any free port. Rank 0's ANYCCL_PORT is "
     "another one"},
    {"ANYCCL_CONNECT_ALL", "32",
     "up to so many ranks connect with all others when a communicator is created; in larger "
     "groups, and with ANYCCL_RECONNECT, ranks that reach each other over TCP connect when they "
     "first need to",
     [](const Config& c) {
       return std::string(c.connect_all == Config().connect_all ? ""
                                                                : std::to_string(c.connect_all));
     }},
    {"ANYCCL_TIMEOUT", "60", "seconds that creating a communicator may take"},
    {"ANYCCL_OP_TIMEOUT", "1800",
     "seconds that an operation may take that has no time limit of its own, from its turn; 0: no "
     "limit"},
    {"ANYCCL_WARN_AFTER", "10",
     "seconds without progress after which a waiting rank logs whom it waits for; 0: never"},
    {"ANYCCL_RECORD", "1024",
     "operations that each communicator remembers for dumps and traces, up to 1048576; 0: none. "
     "With ANYCCL_TRACE 65536 unless it is set"},
    {"ANYCCL_DUMP_DIR", "",
     "folder where a rank writes what it knows when it fails or waits for long, for `anyccl "
     "blame`"},
    {"ANYCCL_DUMP_SIGNAL", "",
     "USR1 or USR2: a process that gets this signal writes what it knows into ANYCCL_DUMP_DIR"},
    {"ANYCCL_TRACE", "",
     "folder where a rank writes the timeline of its operations when a communicator ends, for "
     "`anyccl trace` and Perfetto"},
    {"ANYCCL_METRICS", "",
     "folder where a process writes what it has done so far each 5 s, for the textfile collector "
     "of "
     "Prometheus' node exporter"},
    {"ANYCCL_DEBUG", "WARN", "NONE, WARN, INFO or TRACE: what is logged on stderr"},
    {"ANYCCL_DEBUG_SUBSYS", "ALL",
     "of INFO: INIT, NET, SHM, COLL, TUNING, comma separated; ^ in front: all but these"},
    {"ANYCCL_DEBUG_FILE", "", "file for what is logged; %h is the host, %p the process"},
    {"XDG_CACHE_HOME", "~/.cache", "folder where `anyccl tune` writes, in the folder anyccl"},
    {"RANK", "", "this process's rank (from the launcher)"},
    {"WORLD_SIZE", "", "number of ranks (from the launcher)"},
    {"LOCAL_RANK", "", "this process's rank on its host (from the launcher)"},
    {"LOCAL_WORLD_SIZE", "", "ranks on this host (from the launcher)"},
    {"MASTER_ADDR", "", "address of rank 0's host (from the launcher)"},
    {"MASTER_PORT", "", "the launcher's own port there (from the launcher)"},
};

constexpr double kMostSeconds = 1e6;  // some 11 days
constexpr std::string_view kLevels[] = {"NONE", "WARN", "INFO", "TRACE"};

std::string env_text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Status read_choice(const char* name, std::string& into, std::span<const std::string_view> allowed) {
  into = env_text(name);
  if (into.empty() || std::find(allowed.begin(), allowed.end(), into) != allowed.end()) return {};
  return error(Code::invalid_argument, "{}={} is not one of {}", name, into,
               fmt::join(allowed, ", "));
}

/// Reads the choice that name_in() gives the variable's text for; 0 if the variable is not set.
template <typename Choice>
Status read_choice(const char* name, Choice& into, std::span<const std::string_view> allowed) {
  std::string text;
  ANYCCL_CHECK(read_choice(name, text, allowed));
  const auto found = std::find(allowed.begin(), allowed.end(), text);
  into = static_cast<Choice>(text.empty() ? 0 : found - allowed.begin() + 1);
  return {};
}

template <typename Number>
Status read_number(const char* name, Number low, Number high, std::optional<Number>& into) {
  const std::string text = env_text(name);
  into.reset();
  if (text.empty()) return {};
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc{} && end == text.data() + text.size() && value >= low && value <= high)
    return into = value, Status();
  return error(Code::invalid_argument, "{}={} is not a number from {} to {}", name, text, low,
               high);
}

/// `into` stays as it is if the variable is not set.
template <typename Number>
Status read_number(const char* name, Number low, Number high, Number& into) {
  std::optional<Number> number;
  ANYCCL_CHECK(read_number(name, low, high, number));
  into = number.value_or(into);
  return {};
}

Status read_switch(const char* name, bool& into) {
  std::optional<int> number;
  ANYCCL_CHECK(read_number(name, 0, 1, number));
  into = number.value_or(into ? 1 : 0) == 1;
  return {};
}

Status read_size(const char* name, SizeLimits limits, std::size_t& into) {
  const std::string text = env_text(name);
  into = 0;
  if (text.empty()) return {};
  const Result<std::size_t> bytes = parse_size(text);
  if (!bytes.ok())
    return error(Code::invalid_argument, "{}={}: {}", name, text, bytes.status().message());
  into = *bytes;
  return check_size(name, into, limits);
}

/// Sets which subsystems are logged. "INIT,NET": these; "^NET": all others; ALL or nothing: all.
Status read_subsystems() {
  const std::string text = env_text("ANYCCL_DEBUG_SUBSYS");
  const bool others = text.starts_with('^');
  std::uint32_t bits = 0;
  std::string_view rest = std::string_view(text).substr(others ? 1 : 0);
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    const auto found = std::find(std::begin(kSubsystemNames), std::end(kSubsystemNames), name);
    if (name != "ALL" && found == std::end(kSubsystemNames))
      return error(Code::invalid_argument, "ANYCCL_DEBUG_SUBSYS={}: '{}' is not one of {}, ALL",
                   text, name, fmt::join(kSubsystemNames, ", "));
    bits |= name == "ALL" ? ~0U : 1U << (found - std::begin(kSubsystemNames));
  }
  set_log_subsystems(text.empty() ? ~0U : others ? ~bits : bits);
  return {};
}

constexpr std::string_view kDumpSignals[] = {"USR1", "USR2"};

Status set_up_log() {
  std::string level;
  ANYCCL_CHECK(read_choice("ANYCCL_DEBUG", level, kLevels));
  if (!level.empty())
    set_log_level(level == "NONE"   ? LogLevel::none
                  : level == "WARN" ? LogLevel::warn
                  : level == "INFO" ? LogLevel::info
                                    : LogLevel::trace);
  ANYCCL_CHECK(read_subsystems());
  const std::string file = env_text("ANYCCL_DEBUG_FILE");
  return file.empty() ? Status() : set_log_file(file);
}

Status read_secret(std::string& into) {
  into = env_text("ANYCCL_SECRET");
  const bool hex =
      std::all_of(into.begin(), into.end(), [](unsigned char c) { return std::isxdigit(c); });
  if (into.empty() || (into.size() == 32 && hex)) return {};
  return error(Code::invalid_argument, "ANYCCL_SECRET has {} characters; it must be 32 hex digits",
               into.size());
}

Status read_chaos(ChaosPlan& into) {
  const std::string text = env_text("ANYCCL_CHAOS");
  Result<ChaosPlan> plan = ChaosPlan::parse(text);
  if (!plan.ok())
    return error(Code::invalid_argument, "ANYCCL_CHAOS={}: {}", text, plan.status().message());
  into = *plan;
  return {};
}

/// "off", "all", "1/16", "1/16,late".
Status read_verify(Config::Verify& into) {
  const std::string text = env_text("ANYCCL_VERIFY");
  std::string_view each = text;
  constexpr std::string_view kLate = ",late", kOneIn = "1/";
  into.later = each.ends_with(kLate);
  if (into.later) each.remove_suffix(kLate.size());
  into.each = each == "all" ? 1 : 0;
  if (each == "all" || (!into.later && (each.empty() || each == "off"))) return {};
  const char* const end = each.data() + each.size();
  const bool is_part = each.starts_with(kOneIn);
  const auto [rest, problem] = std::from_chars(each.data() + (is_part ? 2 : 0), end, into.each);
  if (is_part && problem == std::errc{} && rest == end && into.each >= 1 &&
      into.each <= kMostVerify)
    return {};
  return error(Code::invalid_argument,
               "ANYCCL_VERIFY={} is not off, all, or 1/N with N from 1 to {}; \",late\" may be "
               "behind the last two",
               text, kMostVerify);
}

Status read_port_range(PortRange& into) {
  const std::string text = env_text("ANYCCL_PORT_RANGE");
  into = {};
  if (text.empty()) return {};
  PortRange read;
  const char* const end = text.data() + text.size();
  const auto [dash, no_low] = std::from_chars(text.data(), end, read.low);
  const bool has_low = no_low == std::errc{} && dash != end && *dash == '-' && read.low > 0;
  const auto [rest, no_high] = std::from_chars(has_low ? dash + 1 : end, end, read.high);
  if (!has_low || no_high != std::errc{} || rest != end || read.high < read.low)
    return error(Code::invalid_argument,
                 "ANYCCL_PORT_RANGE={} is not a range of ports: write the first and the last as in "
                 "40000-40999, from 1 to 65535",
                 text);
  into = read;
  return {};
}

/// Returns XDG's folder for the caches of all programs, without relative paths; empty: none.
std::string cache_folder() {
  if (const std::string folder = env_text("XDG_CACHE_HOME"); folder.starts_with('/')) return folder;
  const std::string home = env_text("HOME");
  return home.starts_with('/') ? home + "/.cache" : "";
}

/// Reports once which set variables mean nothing here; those of NCCL may be for it in the same job.
void report_unknown_names() {
  static std::atomic_flag reported;
  if (reported.test_and_set()) return;
  std::vector<std::string_view> of_nccl;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry), name = text.substr(0, text.find('='));
    if (name.starts_with("NCCL_")) of_nccl.push_back(name);
    if (!name.starts_with("ANYCCL_") || name.starts_with("ANYCCL_TORCH_")) continue;
    if (std::ranges::find(kVariables, name, &Variable::name) == std::end(kVariables))
      log(LogLevel::warn, "{} is set but anyccl does not know it; see `anyccl info`", name);
  }
  if (!of_nccl.empty())
    log(LogSubsystem::init, "set for NCCL, not read: {}; docs/nccl.md", fmt::join(of_nccl, ", "));
}

}  // namespace

std::span<const Variable> variables() {
  return kVariables;
}

Status check_size(std::string_view setting, std::size_t bytes, SizeLimits limits) {
  if (bytes >= limits.least && bytes <= limits.most) return {};
  return error(Code::invalid_argument, "{}={} is not in {}..{} bytes", setting, bytes, limits.least,
               limits.most);
}

std::optional<std::string> value_now(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

Result<Config> read_config() {
  Config c;
  ANYCCL_CHECK(set_up_log());
  report_unknown_names();
  c.algo = env_text("ANYCCL_ALGO");
  c.algo_path = env_text("ANYCCL_ALGO_PATH");
  c.tuner_table = env_text("ANYCCL_TUNER_TABLE");
  c.proto = env_text("ANYCCL_PROTO");
  ANYCCL_CHECK(read_size("ANYCCL_CHUNK_SIZE", kChunkLimits, c.chunk_bytes));
  ANYCCL_CHECK(read_size("ANYCCL_BUFFSIZE", kBufferLimits, c.buffer_bytes));
  ANYCCL_CHECK(read_choice("ANYCCL_SHM_COPY", c.shm_copy, kCopyNames));
  WaitMode waits{};
  ANYCCL_CHECK(read_choice("ANYCCL_WAIT", waits, kWaitNames));
  if (waits != WaitMode{}) c.waits = waits;
  c.transport = env_text("ANYCCL_TRANSPORT");
  c.host_id = env_text("ANYCCL_HOSTID");
  c.interface = env_text("ANYCCL_SOCKET_IFNAME");
  ANYCCL_CHECK(read_number("ANYCCL_TCP_ACK_TIMEOUT", 1, 600, c.ack_timeout_s));
  ANYCCL_CHECK(read_switch("ANYCCL_CHECKSUM", c.checksums));
  ANYCCL_CHECK(read_chaos(c.chaos));
  ANYCCL_CHECK(read_switch("ANYCCL_TLS", c.tls));
  ANYCCL_CHECK(read_number("ANYCCL_RECONNECT", 0.0, 86400.0, c.reconnect_s));
  ANYCCL_CHECK(read_secret(c.secret));
  c.cache_folder = cache_folder();
  ANYCCL_CHECK(read_number("ANYCCL_REPRODUCIBLE", 0, 3, c.reproducible));
  ANYCCL_CHECK(read_verify(c.verify));
  ANYCCL_CHECK(read_switch("ANYCCL_FUSION", c.fuses));
  ANYCCL_CHECK(read_switch("ANYCCL_DEVICE_QUEUES", c.device_queues));
  ANYCCL_CHECK(read_number("ANYCCL_PORT", 1, 65535, c.port));
  ANYCCL_CHECK(read_port_range(c.ports));
  ANYCCL_CHECK(read_number("ANYCCL_TIMEOUT", 0.001, 86400.0, c.timeout_s));
  ANYCCL_CHECK(read_number("ANYCCL_OP_TIMEOUT", 0.0, kMostSeconds, c.op_timeout_s));
  ANYCCL_CHECK(read_number("ANYCCL_WARN_AFTER", 0.0, kMostSeconds, c.warn_after_s));
  std::optional<std::size_t> record_entries;
  ANYCCL_CHECK(read_number("ANYCCL_RECORD", std::size_t{0}, kMostRecordEntries, record_entries));
  c.dump.folder = env_text("ANYCCL_DUMP_DIR");
  std::string dump_signal;
  ANYCCL_CHECK(read_choice("ANYCCL_DUMP_SIGNAL", dump_signal, kDumpSignals));
  c.dump.signal = dump_signal.empty() ? 0 : dump_signal == kDumpSignals[0] ? SIGUSR1 : SIGUSR2;
  c.trace_folder = env_text("ANYCCL_TRACE");
  c.metrics_folder = env_text("ANYCCL_METRICS");
  c.record_entries =
      record_entries.value_or(c.trace_folder.empty() ? kRecordEntries : kTracedEntries);
  ANYCCL_CHECK(read_number("ANYCCL_CONNECT_ALL", 0, 65536, c.connect_all));
  read_launcher_variables(c);
  c.master_addr = env_text("MASTER_ADDR");
  return c;
}

}  // namespace anyccl
