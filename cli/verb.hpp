#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace anyccl::cli {

/// Runs a verb once its flags are parsed; returns the exit code.
using Body = std::function<int()>;

/// The arguments after the first "--", or after the verb's flags: a command to run.
using Command = std::vector<std::string>;

/// One verb of the tool. A verb is one file in verbs/ that defines `verb_<name>`, and one name in
/// verbs/CMakeLists.txt.
struct Verb {
  std::string_view name, summary;
  /// Adds the verb's flags to `app` and returns its body. `command` is filled before the body runs.
  Body (*declare)(CLI::App& app, const Command& command);
  bool takes_command = false;
};

#define ANYCCL_ENTRY(name) extern const Verb verb_##name;
#include "anyccl/verb.inc"
#undef ANYCCL_ENTRY

/// Exit code for a command line that the tool does not understand.
inline constexpr int kUsageError = 2;

}  // namespace anyccl::cli
