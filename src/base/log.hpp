#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace anyccl {

enum class LogLevel { none, warn, info, trace };

/// Sets what is printed (ANYCCL_DEBUG); the default is warn. Any thread.
void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);
void log_text(LogLevel level, std::string_view text);

/// One line on stderr, "anyccl host:pid WARN ...", if `level` is enabled. Not for hot paths.
template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> text, Args&&... args) {
  if (log_enabled(level)) log_text(level, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace anyccl
