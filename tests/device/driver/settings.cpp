#include "settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>

#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::simulated {
namespace {

constexpr std::string_view kPrefix = "SIMULATED_CUDA_";

#define ANYCCL_SIMULATED_NAME(name, parameters) #name,
constexpr std::string_view kFunctions[] = {ANYCCL_CUDA_FUNCTIONS(ANYCCL_SIMULATED_NAME)
                                               ANYCCL_MORE_CUDA_FUNCTIONS(ANYCCL_SIMULATED_NAME)};
#undef ANYCCL_SIMULATED_NAME

template <typename Number>
bool parse(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

/// Reads variables by what follows SIMULATED_CUDA_ in their names, and knows which it was asked
/// for.
class Environment {
 public:
  std::string text(const std::string& name) {
    asked_.insert(name);
    const char* const found = std::getenv((std::string(kPrefix) + name).c_str());
    return found == nullptr ? "" : found;
  }
  [[noreturn]] static void refuse_value(const std::string& name, const std::string& value,
                                        const std::string& expected) {
    refuse(std::string(kPrefix) + name + "=" + value + ": must be " + expected);
  }
  std::uint64_t number(const std::string& name, std::uint64_t otherwise, std::uint64_t least,
                       std::uint64_t most) {
    const std::string given = text(name);
    std::uint64_t value = otherwise;
    if (!given.empty() && (!parse(given, value) || value < least || value > most))
      refuse_value(name, given,
                   "a number from " + std::to_string(least) + " to " + std::to_string(most));
    return value;
  }
  bool flag(const std::string& name) {
    const std::string given = text(name);
    if (!given.empty() && given != "0" && given != "1") refuse_value(name, given, "0 or 1");
    return given == "1";
  }
  /// A misspelled name would be a setting that does nothing.
  void refuse_unknown() const {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view line = *entry;
      if (!line.starts_with(kPrefix)) continue;
      const std::string name(line.substr(kPrefix.size(), line.find('=') - kPrefix.size()));
      if (!asked_.contains(name))
        refuse(std::string(kPrefix) + name + ": there is no such setting");
    }
  }

 private:
  std::set<std::string> asked_;
};

void read_chaos(Environment& environment, Settings& settings) {
  const std::string given = environment.text("CHAOS");
  if (given.empty()) return;
  const std::vector<std::string_view> parts = split(given);
  std::uint64_t seed = 0;
  const bool is_right = parts.size() <= 2 && parse(parts[0], seed) &&
                        (parts.size() == 1 || parse(parts[1], settings.chaos_most_us));
  if (!is_right || settings.chaos_most_us == 0 || settings.chaos_most_us > 1'000'000)
    Environment::refuse_value("CHAOS", given,
                              "a seed, or a seed, a comma and microseconds from 1 to 1000000");
  settings.chaos_seed = seed * 2 + 1;
}

bool is_fault(std::string_view name) {
  if (name == "lost" || name == "killed") return true;
  return !name.empty() &&
         std::any_of(std::begin(kFunctions), std::end(kFunctions),
                     [&](std::string_view function) { return function.starts_with(name); });
}

void read_faults(Environment& environment, Settings& settings) {
  const std::string given = environment.text("FAIL");
  if (given.empty()) return;
  for (const std::string_view part : split(given)) {
    const std::size_t colon = part.find(':');
    PlannedFault fault{std::string(part.substr(0, colon)), 0};
    if (colon == std::string_view::npos || !parse(part.substr(colon + 1), fault.at) ||
        fault.at == 0)
      Environment::refuse_value("FAIL", given, "NAME:NUMBER,..., numbers from 1");
    if (!is_fault(fault.name))
      refuse(std::string(kPrefix) + "FAIL=" + given + ": no function begins with '" + fault.name +
             "', and it is neither 'lost' nor 'killed'");
    settings.faults.push_back(std::move(fault));
  }
}

void read_model(Environment& environment, Model& model) {
  struct Field {
    std::string_view name;
    double& value;
  };
  const Field fields[] = {{"link", model.link},   {"device", model.device},
                          {"copy", model.copy},   {"launch", model.launch},
                          {"memop", model.memop}, {"hostfn", model.hostfn},
                          {"call", model.call},   {"small_call", model.small_call},
                          {"sync", model.sync},   {"poll", model.poll}};
  const std::string given = environment.text("MODEL");
  if (given.empty()) return;
  for (const std::string_view part : split(given)) {
    const std::size_t equals = part.find('=');
    const auto* const field =
        std::find_if(std::begin(fields), std::end(fields),
                     [&](const Field& one) { return one.name == part.substr(0, equals); });
    double value = 0;
    if (field == std::end(fields) || equals == std::string_view::npos ||
        !parse(part.substr(equals + 1), value) || !(value >= 0) || value > 1e12)
      Environment::refuse_value("MODEL", given,
                                "NAME=NUMBER,..., with link, device, copy, launch, memop, hostfn, "
                                "call, small_call, sync or poll");
    field->value = value;
  }
  if (model.link <= 0 || model.device <= 0)
    Environment::refuse_value("MODEL", given, "so that link and device are above 0");
}

Settings read_settings() {
  Settings read;
  Environment environment;
  read.devices = static_cast<int>(environment.number("DEVICES", 2, 0, kMostDevices));
  read.device_bytes = environment.number("DEVICE_MB", 256, 1, 1 << 20) << 20;
  read.state = environment.text("STATE");
  read.kernels = environment.text("KERNELS");
  read_chaos(environment, read);
  read_faults(environment, read);
  read.connections = static_cast<unsigned>(environment.number("CONNECTIONS", 0, 1, 1024));
  read.one_priority = environment.flag("ONE_PRIORITY");
  read.depth = environment.number("DEPTH", 0, 1, 1 << 20);
  read.memops = !environment.flag("NO_MEMOPS");
  read.read_only = !environment.flag("NO_READ_ONLY");
  read.ipc = !environment.flag("NO_IPC");
  read.p2p = environment.flag("P2P");
  read.pageable = environment.flag("PAGEABLE");
  read.trace = environment.flag("TRACE");
  read_model(environment, read.model);
  environment.refuse_unknown();
  return read;
}

}  // namespace

const Settings& settings() {
  static const Settings& read = *new Settings(read_settings());  // threads outlive destructors
  return read;
}

void refuse(const std::string& why) {
  std::fprintf(stderr, "simulated driver: %s\n", why.c_str());
  std::_Exit(2);
}

}  // namespace anyccl::simulated
