// The environment: a line of the input each is NAME=value, or a text that some parser reads.

#include <cstdlib>

#include "base/byte_size.hpp"
#include "base/config.hpp"
#include "base/launchers.hpp"
#include "base/log.hpp"
#include "framework/tuning/algorithm_rules.hpp"
#include "framework/tuning/protocol_rules.hpp"
#include "input.hpp"
#include "launch/hosts.hpp"
#include "platform/bootstrap/socket/secret.hpp"

namespace anyccl::fuzz {
namespace {

void read_texts(const std::string& text) {
  static_cast<void>(parse_size(text));
  static_cast<void>(AlgorithmRules::parse(text));
  static_cast<void>(ProtocolRules::parse(text));
  static_cast<void>(bootstrap::Secret::parse(text));
  static_cast<void>(first_host_of(text));
  static_cast<void>(cli::parse_hosts(text, 4));
  static_cast<void>(cli::parse_master(text));
}

}  // namespace

void run(Input input) {
  std::vector<std::string> names;
  while (!input.empty()) {
    const std::string line = input.line(), name = line.substr(0, line.find('='));
    read_texts(line);
    const auto known = variables();
    // A file for the log is opened by its name.
    if (name == "ANYCCL_DEBUG_FILE" || name.size() == line.size() ||
        std::none_of(known.begin(), known.end(), [&](const Variable& v) { return v.name == name; }))
      continue;
    ::setenv(name.c_str(), line.substr(name.size() + 1).c_str(), 1);
    names.push_back(name);
  }
  const auto config = read_config();
  if (config.ok()) static_cast<void>(find_place(*config));
  for (const std::string& name : names) ::unsetenv(name.c_str());
  set_log_level(LogLevel::none);
}

}  // namespace anyccl::fuzz
