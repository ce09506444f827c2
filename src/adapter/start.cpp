#include "adapter/start.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "adapter/copy_check.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "framework/machine_table.hpp"
#include "platform/probe/host_facts.hpp"

namespace anyccl {
namespace {

/// Where this process runs, as the hello carries it.
void put_place(const HostFacts& facts, Hello& hello) {
  hello.cpus = facts.cpus;
  if (std::isfinite(facts.quota))
    hello.quota = static_cast<std::uint32_t>(std::clamp(facts.quota, 1.0, 1e6));
  const Nearness near = nearness_of(hello.cpus);
  hello.near_cache = near.cache;
  hello.near_node = near.node;
}

/// The variables that must be the same everywhere, as the hello carries them. Of a file its
/// content counts.
std::string settings_of(Config config, const TunerTable* named) {
  config.tuner_table = named == nullptr ? "" : fmt::format("content:{:x}", named->hash());
  std::string text;
  for (const Variable& variable : variables()) {
    const std::string value = variable.same_everywhere() ? variable.compared(config) : "";
    if (!value.empty())
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", variable.name, value);
  }
  return text;
}

/// Read once: a program may create many communicators.
std::shared_ptr<const TunerTable> machine_table(const Config& config) {
  static std::mutex mutex;
  static auto* const tables =  // never destroyed: by file
      new std::map<std::string, std::shared_ptr<const TunerTable>>;
  const std::string file = machine_table_file(config.cache_folder);
  if (file.empty()) return nullptr;
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = tables->try_emplace(file);
  if (!is_new) return place->second;
  auto table = read_machine_table(file);
  if (table.ok())
    place->second = *std::move(table);
  else
    log(LogLevel::warn, "{}; until then algorithms are chosen without it",
        table.status().message());
  return place->second;
}

}  // namespace

Result<std::shared_ptr<const TunerTable>> table_of(const Config& config) {
  if (config.tuner_table.empty()) return machine_table(config);
  if (config.tuner_table == kNoTable) return std::shared_ptr<const TunerTable>();
  ANYCCL_TRY(TunerTable table, TunerTable::read(config.tuner_table));
  return std::make_shared<const TunerTable>(std::move(table));
}

Result<Start> prepare_start(int rank, int size) {
  ANYCCL_TRY(Config config, read_config());
  return prepare_start(rank, size, std::move(config));
}

Result<Start> prepare_start(int rank, int size, Config config) {
  ANYCCL_CHECK(refuse_second_copy());
  Start start;
  start.config = std::move(config);
  ANYCCL_CHECK(check_algorithm_name(start.config.algo));
  ANYCCL_TRY(start.table, table_of(start.config));
  start.deadline = Deadline::in(
      std::chrono::nanoseconds(static_cast<std::int64_t>(start.config.timeout_s * 1e9)));
  ANYCCL_TRY(start.listeners, Listeners::open(start.config.interface));
  const bool named = !start.config.tuner_table.empty();
  const HostFacts facts = host_facts();
  const HostIdentity host{facts.boot_id, facts.network_namespace, start.config.host_id};
  ANYCCL_TRY(start.hello, make_hello(Rank{rank}, size, host,
                                     settings_of(start.config, named ? start.table.get() : nullptr),
                                     start.listeners));
  put_place(facts, start.hello);
  if (!named && start.table != nullptr) start.hello.machine_table = start.table->hash();
  return start;
}

Preferences preferences_of(const Start& start, const std::vector<Hello>& members) {
  Preferences preferences{.algorithm = start.config.algo};
  const auto other = std::find_if(members.begin(), members.end(), [&](const Hello& member) {
    return member.machine_table != start.hello.machine_table;
  });
  if (other != members.end())
    log(LogLevel::info,
        "{} has found other measurements of its machine than {}, or none: they are not used",
        describe(*other), describe(start.hello));
  else if (start.table != nullptr)
    preferences.tables.push_back(start.table);
  return preferences;
}

}  // namespace anyccl
