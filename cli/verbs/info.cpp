#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "algorithm/catalog/algorithm.hpp"
#include "base/config.hpp"
#include "combinations.hpp"
#include "framework/tuning/protocol_rules.hpp"
#include "platform/device/devices.hpp"
#include "platform/probe/host_facts.hpp"
#include "platform/probe/machine.hpp"
#include "platform/reduce/isa.hpp"
#include "runtime/links/transports.hpp"
#include "runtime/process/init_context.hpp"
#include "runtime/process/init_report.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::ordered_json;

/// A secret's value is never shown.
std::string shown_value(const Variable& variable, const std::string& value) {
  return variable.name == "ANYCCL_SECRET" ? "(set, not shown)" : value;
}

/// Describes the name, machine, cores, CPU quota and instruction sets.
Json host_json() {
  const probe::HostFacts facts = probe::host_facts();
  Json isas = Json::array();
  for (const Isa& isa : instruction_sets())
    if (isa.supported) isas.push_back(isa.name);
  return {{"name", facts.hostname},
          {"machine", describe(probe::this_machine())},
          {"cores", facts.cores},
          {"quota", std::isfinite(facts.quota) ? Json(facts.quota) : Json(nullptr)},
          {"instruction_sets", isas}};
}

/// Lists the names of all algorithms by collective.
Json algorithms_json() {
  Json by_collective = Json::object();
  for (const Algorithm* algorithm : all_algorithms())
    by_collective[std::string(name(algorithm->collective))].push_back(algorithm->name);
  return by_collective;
}

/// Lists every variable that anyccl knows, set or not.
Json environment_json() {
  Json list = Json::array();
  for (const Variable& variable : variables()) {
    const auto now = value_now(variable.name);
    list.push_back({{"name", variable.name},
                    {"default", variable.fallback},
                    {"meaning", variable.meaning},
                    {"same_everywhere", variable.same_everywhere()},
                    {"value", now ? Json(shown_value(variable, *now)) : Json(nullptr)}});
  }
  return list;
}

/// The speed that the kernel says; absent: it does not, as for interfaces that are no cards.
std::optional<int> megabits_of(const std::string& interface) {
  std::ifstream file("/sys/class/net/" + interface + "/speed");
  int megabits = 0;
  if (!(file >> megabits) || megabits <= 0) return std::nullopt;
  return megabits;
}

/// In the order in which others try them.
Json interfaces_json() {
  const Result<Config> config = read_config();
  Json list = Json::array();
  for (const OwnAddress& one : own_addresses(config.ok() ? *config : Config())) {
    const std::optional<int> megabits = megabits_of(one.interface);
    list.push_back({{"interface", one.interface},
                    {"address", one.address},
                    {"megabits_per_s", megabits ? Json(*megabits) : Json(nullptr)},
                    {"leads_elsewhere", !one.is_loopback}});
  }
  return list;
}

/// A line for each device, or why there is none. Loads the driver, if there is one.
Json devices_json() {
  std::string why;
  const std::vector<std::string> devices = describe_devices(why);
  return {{"devices", devices}, {"note", why}};
}

/// Where bytes lie that one rank publishes for others.
Json protocols_json() {
  return {{kProtocolNames[0], "up to 56 bytes: in the cache line of their sequence word"},
          {kProtocolNames[1], "up to 2104 bytes, less with many ranks: in the slot of that word"},
          {kProtocolNames[2], "all others: in the staging ring, or where the caller has them"}};
}

/// Returns the sources that choose algorithms in this environment, by precedence; if a setting is
/// wrong, one text with the reason.
Json deciders() {
  const Result<Config> config = read_config();
  if (!config.ok()) return {fmt::format("nothing: {}", config.status().message())};
  const auto table = table_of(*config);
  if (!table.ok()) return {fmt::format("nothing: {}", table.status().message())};
  for (const Status& rules :
       {AlgorithmRules::parse(config->algo).status(), ProtocolRules::parse(config->proto).status()})
    if (!rules.ok()) return {fmt::format("nothing: {}", rules.message())};
  Json all = Json::array();
  if (!config->algo.empty()) all.push_back("ANYCCL_ALGO=" + config->algo + " where it fits");
  if (*table != nullptr) all.push_back("measurements in " + (*table)->name());
  all.push_back("the built-in choice");
  return all;
}

Json everything() {
  return {{"version", ANYCCL_VERSION_TEXT},
          {"build", {{"compiler", ANYCCL_COMPILER}, {"type", ANYCCL_BUILD_TYPE}}},
          {"host", host_json()},
          {"transports", Json(transport_names())},
          {"interfaces", interfaces_json()},
          {"devices", devices_json()},
          {"algorithms", algorithms_json()},
          {"protocols", protocols_json()},
          {"chosen_by", deciders()},
          {"environment", environment_json()}};
}

std::string words(const Json& list) {
  return fmt::format("{}", fmt::join(list.get<std::vector<std::string>>(), ", "));
}

void print_environment(const Json& environment) {
  fmt::print("environment (* must be the same on all ranks)\n");
  for (const Json& variable : environment) {
    const auto text = [&](const char* key) { return variable[key].get<std::string>(); };
    const std::string fallback = text("default");
    fmt::print("  {:<22}{} {}{}\n", text("name"),
               variable["same_everywhere"].get<bool>() ? '*' : ' ', text("meaning"),
               fallback.empty() ? "" : fmt::format(" [default: {}]", fallback));
    if (!variable["value"].is_null()) fmt::print("  {:<22}  = {}\n", "", text("value"));
  }
}

void print_text(const Json& all) {
  const Json& host = all["host"];
  const std::string quota = host["quota"].is_null()
                                ? "no quota"
                                : fmt::format("quota of {:g} cores", host["quota"].get<double>());
  fmt::print("anyccl {}, built with {} ({})\n", ANYCCL_VERSION_TEXT, ANYCCL_COMPILER,
             ANYCCL_BUILD_TYPE);
  fmt::print("host {}: {} usable cores, {}; reductions in {}\n", host["name"].get<std::string>(),
             host["cores"].get<int>(), quota, words(host["instruction_sets"]));
  fmt::print("machine: {}\n", host["machine"].get<std::string>());
  fmt::print("transports: {}\n", words(all["transports"]));
  fmt::print(
      "interfaces, in the order in which other hosts try them (ANYCCL_SOCKET_IFNAME chooses)\n");
  for (const Json& one : all["interfaces"]) {
    std::string note = one["leads_elsewhere"].get<bool>() ? "" : ", this host only";
    if (!one["megabits_per_s"].is_null())
      note = fmt::format(", {} Mbit/s", one["megabits_per_s"].get<int>());
    fmt::print("  {:<17} {}{}\n", one["interface"].get<std::string>(),
               one["address"].get<std::string>(), note);
  }
  const Json& devices = all["devices"]["devices"];
  if (devices.empty()) fmt::print("devices: none; {}\n", all["devices"]["note"].get<std::string>());
  for (const Json& device : devices) fmt::print("device {}\n", device.get<std::string>());
  fmt::print("algorithms\n");
  for (const auto& [collective, names] : all["algorithms"].items())
    fmt::print("  {:<17} {}\n", collective, words(names));
  fmt::print("protocols, of shared memory only; elsewhere they say how long pieces are\n");
  for (const auto& [name, meaning] : all["protocols"].items())
    fmt::print("  {:<17} {}\n", name, meaning.get<std::string>());
  fmt::print("algorithms are chosen by {}\n",
             fmt::join(all["chosen_by"].get<std::vector<std::string>>(), ", then "));
  print_environment(all["environment"]);
}

int print_combinations(bool as_json) {
  Json list = Json::array();
  for (const Combination& c : all_combinations()) {
    list.push_back({{"algorithm", id(*c.algorithm)}, {"protocol", c.protocol}});
    if (!as_json) fmt::print("{:<36}{}\n", id(*c.algorithm), c.protocol);
  }
  if (as_json) fmt::print("{}\n", list.dump(1));
  return 0;
}

Body declare(CLI::App& app, const Command&) {
  const auto as_json = std::make_shared<bool>(false), combinations = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "Print JSON");
  app.add_flag("--combinations", *combinations,
               "List each algorithm with each protocol it can be forced to use");
  return [as_json, combinations] {
    if (*combinations) return print_combinations(*as_json);
    const Json all = everything();
    if (*as_json)
      fmt::print("{}\n", all.dump(1));
    else
      print_text(all);
    return 0;
  };
}

}  // namespace

const Verb verb_info{"info", "Show the version, this host, transports, algorithms and settings",
                     declare};

}  // namespace anyccl::cli
