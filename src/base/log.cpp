#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace anyccl {
namespace {

spdlog::level::level_enum native(LogLevel level) {
  switch (level) {
    case LogLevel::none:
      return spdlog::level::off;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::trace:
      return spdlog::level::trace;
  }
  return spdlog::level::warn;
}

// A logger of our own, never in spdlog's registry: the process may hold another copy of it.
// Never destroyed: a stream's thread may write during exit.
spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    char host[256] = "?";
    ::gethostname(host, sizeof host - 1);
    auto* made = new spdlog::logger("anyccl", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern(fmt::format("anyccl {}:%P %l %v", host));
    made->set_level(spdlog::level::warn);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) {
  logger().set_level(native(level));
}
bool log_enabled(LogLevel level) {
  return logger().should_log(native(level));
}
void log_text(LogLevel level, std::string_view text) {
  logger().log(native(level), text);
}

}  // namespace anyccl
