#include "runtime/process/init_context.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "algorithm/loaded/load.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/per_process.hpp"
#include "base/round_up.hpp"
#include "framework/tuning/machine_table.hpp"
#include "platform/probe/host_facts.hpp"
#include "platform/tls/tls.hpp"
#include "runtime/links/transports.hpp"
#include "runtime/process/duplicate_library.hpp"

namespace anyccl {
namespace {

/// Where this process runs, as the hello carries it.
void put_placement(const probe::HostFacts& facts, bootstrap::Hello& hello) {
  hello.cpus = facts.cpus;
  if (std::isfinite(facts.quota))
    hello.quota = static_cast<std::uint32_t>(std::clamp(facts.quota, 1.0, 1e6));
  const probe::Nearness near = probe::nearness_of(hello.cpus);
  hello.near_cache = near.cache;
  hello.near_node = near.node;
}

/// A value that would take much room in the hello, which compares it: its begin, and a hash.
std::string short_value(const std::string& value) {
  constexpr std::size_t kMost = 64, kShown = 44;
  if (value.size() <= kMost) return value;
  return fmt::format("{}...#{:x}", value.substr(0, kShown), hash_of(value));
}

/// Appends NAME=value, shortened if it is long; an empty value adds nothing.
void add_setting(std::string& text, std::string_view name, const std::string& value) {
  if (!value.empty())
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, short_value(value));
}

/// Sizes that the environment gives are the same whatever the configuration says.
void add_settings_of(const CommSettings& settings, const Config& config, std::string& text) {
  const auto size = [](std::size_t ours, std::size_t environment) {
    return ours == 0 || environment != 0 ? "" : std::to_string(ours);
  };
  add_setting(text, "config->algo", settings.algo);
  add_setting(text, "config->proto", settings.proto);
  add_setting(text, "config->chunkBytes", size(settings.chunk_bytes, config.chunk_bytes));
  add_setting(text, "config->buffSize", size(settings.buffer_bytes, config.buffer_bytes));
  if (settings.level >= 0)
    add_setting(text, "config->reproducible", std::to_string(settings.level));
  if (settings.verify >= 0) add_setting(text, "config->verify", std::to_string(settings.verify));
  if (settings.verify_later >= 0)
    add_setting(text, "config->verifyLater", std::to_string(settings.verify_later));
  if (settings.device_queues >= 0)
    add_setting(text, "config->deviceQueues", std::to_string(settings.device_queues));
}

/// Algorithms that were loaded count by their content, not by their files. A hello has room for a
/// few.
void add_loaded_algorithms(std::string& text) {
  constexpr std::size_t kMost = 256;  // characters
  std::vector<const LoadedAlgorithm*> loaded;
  std::size_t characters = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (algorithm->loaded == nullptr) continue;
    loaded.push_back(algorithm->loaded);
    characters += id(*algorithm).size() + 18;  // the hash, = and a space
  }
  if (characters <= kMost) {
    for (const LoadedAlgorithm* one : loaded)
      add_setting(text, id(one->algorithm()), fmt::format("{:016x}", one->hash()));
    return;
  }
  std::uint64_t all = 0;  // whatever their order
  for (const LoadedAlgorithm* one : loaded) all += mix(1, one->hash());
  add_setting(text, "loaded-algorithms", fmt::format("{}#{:016x}", loaded.size(), all));
}

/// The variables that must be the same everywhere, as the hello carries them, and what the
/// configuration says. Of a file its content counts.
std::string settings_of(Config config, const CommSettings& settings, const TunerTable* named) {
  config.tuner_table = named == nullptr ? "" : fmt::format("content:{:x}", named->hash());
  std::string text;
  for (const Variable& variable : variables())
    if (variable.same_everywhere()) add_setting(text, variable.name, variable.compared(config));
  add_settings_of(settings, config, text);
  add_loaded_algorithms(text);
  return text;
}

Status read_plan_settings(InitContext& init) {
  const Config& config = init.config;
  const CommSettings& settings = init.settings;
  ANYCCL_TRY(init.environment.algorithms, AlgorithmRules::parse(config.algo));
  ANYCCL_TRY(init.environment.protocols, ProtocolRules::parse(config.proto));
  init.environment.chunk_bytes = config.chunk_bytes;
  ANYCCL_TRY(init.communicator.algorithms, AlgorithmRules::parse(settings.algo, "config->algo"));
  ANYCCL_TRY(init.communicator.protocols, ProtocolRules::parse(settings.proto, "config->proto"));
  init.communicator.chunk_bytes = settings.chunk_bytes;
  init.environment.level = std::max(0, config.reproducible);
  init.communicator.level = std::max(0, settings.level);
  if (settings.chunk_bytes != 0)
    ANYCCL_CHECK(check_size("config->chunkBytes", settings.chunk_bytes, kChunkLimits));
  if (settings.buffer_bytes != 0)
    ANYCCL_CHECK(check_size("config->buffSize", settings.buffer_bytes, kBufferLimits));
  return {};
}

/// Read once: a program may create many communicators.
struct MachineTables {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const TunerTable>> by_file;
};

std::shared_ptr<const TunerTable> machine_table(const Config& config) {
  MachineTables& tables = per_process<MachineTables>();
  const std::string file = machine_table_file(config.cache_folder);
  if (file.empty()) return nullptr;
  const std::lock_guard lock(tables.mutex);
  const auto [place, is_new] = tables.by_file.try_emplace(file);
  if (!is_new) return place->second;
  auto table = read_machine_table(file);
  if (table.ok())
    place->second = *std::move(table);
  else
    log(LogLevel::warn, "{}; until then algorithms are chosen without it",
        table.status().message());
  return place->second;
}

/// Read once: a program may create many communicators.
struct LoadedPaths {
  std::mutex mutex;
  std::set<std::string> all;
};

Status load_once(const std::string& paths) {
  if (paths.empty()) return {};
  LoadedPaths& loaded = per_process<LoadedPaths>();
  const std::lock_guard lock(loaded.mutex);
  if (loaded.all.contains(paths)) return {};
  const auto algorithms = load_algorithm_files(paths);
  if (!algorithms.ok())
    return error(algorithms.status().code(), "ANYCCL_ALGO_PATH: {}", algorithms.status().message());
  loaded.all.insert(paths);
  return {};
}

Result<InitContext> read_settings(Config config, const CommSettings& settings) {
  ANYCCL_CHECK(refuse_duplicate_library());
  ANYCCL_CHECK(settings.problem);
  InitContext init;
  init.config = std::move(config);
  init.settings = settings;
  init.settings.environment = nullptr;  // that of this call, and not of those of the communicator
  ANYCCL_CHECK(load_once(init.config.algo_path));
  ANYCCL_CHECK(read_plan_settings(init));
  ANYCCL_CHECK(check_transport_name(init.config.transport));
  if (init.config.tls) ANYCCL_CHECK(tls::is_available());
  ANYCCL_TRY(init.table, table_of(init.config));
  init.deadline = creation_deadline(init.config, settings);
  return init;
}

}  // namespace

Deadline creation_deadline(const Config& config, const CommSettings& settings) {
  const std::chrono::nanoseconds usual(static_cast<std::int64_t>(config.timeout_s * 1e9));
  return Deadline::in(settings.creation_limit ? *settings.creation_limit : usual);
}

Result<std::shared_ptr<const TunerTable>> table_of(const Config& config) {
  if (config.tuner_table.empty()) return machine_table(config);
  if (config.tuner_table == kNoTable) return std::shared_ptr<const TunerTable>();
  ANYCCL_TRY(TunerTable table, TunerTable::read(config.tuner_table));
  return std::make_shared<const TunerTable>(std::move(table));
}

Result<std::size_t> ring_bytes_of(const InitContext& init, int size, bool network) {
  constexpr std::size_t kPage = 4096;
  const bool by_environment = init.config.buffer_bytes != 0;
  const std::size_t asked = by_environment ? init.config.buffer_bytes : init.settings.buffer_bytes;
  if (asked == 0) return ring_bytes_for(size, network);
  ANYCCL_CHECK(check_size(by_environment ? "ANYCCL_BUFFSIZE" : "config->buffSize", asked,
                          {least_ring_bytes(size), kBufferLimits.most}));
  return round_up(asked, kPage);
}

Result<Config> environment_of(const CommSettings& settings) {
  return settings.environment == nullptr ? read_config() : *settings.environment;
}

Result<InitContext> prepare_init(int rank, int size, const CommSettings& settings) {
  ANYCCL_TRY(Config config, environment_of(settings));
  return prepare_init(rank, size, std::move(config), settings);
}

Result<InitContext> prepare_init(int rank, int size, Config config, const CommSettings& settings) {
  ANYCCL_TRY(InitContext init, read_settings(std::move(config), settings));
  ANYCCL_TRY(init.listeners, bootstrap::Listeners::open(init.config.interface, init.config.ports));
  const bool named = !init.config.tuner_table.empty();
  const probe::HostFacts facts = probe::host_facts();
  const bootstrap::HostIdentity host{facts.boot_id, facts.network_namespace, init.config.host_id};
  ANYCCL_TRY(init.hello, bootstrap::make_hello(
                             Rank{rank}, size, host,
                             settings_of(init.config, settings, named ? init.table.get() : nullptr),
                             init.listeners));
  put_placement(facts, init.hello);
  if (!named && init.table != nullptr) init.hello.machine_table = init.table->hash();
  return init;
}

Result<InitContext> prepare_init_within(const bootstrap::Hello& hello, const std::string& transport,
                                        const CommSettings& settings) {
  ANYCCL_TRY(Config config, environment_of(settings));
  config.transport = transport;
  ANYCCL_TRY(InitContext init, read_settings(std::move(config), settings));
  const bool named = !init.config.tuner_table.empty();
  init.hello = hello;
  ANYCCL_CHECK(bootstrap::put_settings(
      init.hello, settings_of(init.config, settings, named ? init.table.get() : nullptr)));
  return init;
}

TunerPolicy policy_of(const InitContext& init, const std::vector<bootstrap::Hello>& members) {
  TunerPolicy policy{.environment = init.environment, .communicator = init.communicator};
  const auto other =
      std::find_if(members.begin(), members.end(), [&](const bootstrap::Hello& member) {
        return member.machine_table != init.hello.machine_table;
      });
  if (other != members.end())
    log(LogSubsystem::tuning,
        "{} has found other measurements of its machine than {}, or none: they are not used",
        describe(*other), describe(init.hello));
  else if (init.table != nullptr)
    policy.tables.push_back(init.table);
  return policy;
}

}  // namespace anyccl
