#include "adapter/init_context.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "adapter/duplicate_library.hpp"
#include "adapter/transports.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "framework/tuning/machine_table.hpp"
#include "platform/probe/host_facts.hpp"

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

Result<InitContext> prepare_init(int rank, int size) {
  ANYCCL_TRY(Config config, read_config());
  return prepare_init(rank, size, std::move(config));
}

Result<InitContext> prepare_init(int rank, int size, Config config) {
  ANYCCL_CHECK(refuse_duplicate_library());
  InitContext init;
  init.config = std::move(config);
  ANYCCL_TRY(init.rules, AlgorithmRules::parse(init.config.algo));
  ANYCCL_CHECK(check_transport_name(init.config.transport));
  ANYCCL_TRY(init.table, table_of(init.config));
  init.deadline = Deadline::in(
      std::chrono::nanoseconds(static_cast<std::int64_t>(init.config.timeout_s * 1e9)));
  ANYCCL_TRY(init.listeners, bootstrap::Listeners::open(init.config.interface));
  const bool named = !init.config.tuner_table.empty();
  const probe::HostFacts facts = probe::host_facts();
  const bootstrap::HostIdentity host{facts.boot_id, facts.network_namespace, init.config.host_id};
  ANYCCL_TRY(init.hello,
             bootstrap::make_hello(Rank{rank}, size, host,
                                   settings_of(init.config, named ? init.table.get() : nullptr),
                                   init.listeners));
  put_placement(facts, init.hello);
  if (!named && init.table != nullptr) init.hello.machine_table = init.table->hash();
  return init;
}

TunerPolicy policy_of(const InitContext& init, const std::vector<bootstrap::Hello>& members) {
  TunerPolicy policy{.rules = init.rules};
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
