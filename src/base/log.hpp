#pragma once
// The whole library writes its log by log(), to stderr or to a file. read_config() sets what is
// printed, and where, from ANYCCL_DEBUG and the like.

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "anyccl/status.hpp"

namespace anyccl {

enum class LogLevel { none, warn, info, trace };
/// What a line of level info is about (ANYCCL_DEBUG_SUBSYS).
enum class LogSubsystem : std::uint8_t {
  init,    ///< Communicators: ranks, hosts, transports, settings; and why they fail.
  net,     ///< Connections and interfaces.
  shm,     ///< Shared memory, or why there is none.
  coll,    ///< Which algorithm and protocol a collective has.
  tuning,  ///< Measurements that choose algorithms.
};
inline constexpr std::string_view kSubsystemNames[] = {"INIT", "NET", "SHM", "COLL", "TUNING"};

/// Sets what is printed (ANYCCL_DEBUG); the default is warn. Any thread.
void set_log_level(LogLevel level);
/// Lines of level info are printed if their subsystem's bit is set.
void set_log_subsystems(std::uint32_t bits);
/// From now on lines go to the end of this file instead of stderr; %h is the host, %p the process.
/// Errors: system_error when it cannot be opened.
Status set_log_file(const std::string& path);
bool log_enabled(LogLevel level);
bool log_enabled(LogSubsystem subsystem);
void log_text(LogLevel level, std::string_view text);

/// One line, "anyccl 2026-11-28 14:01:04.123 host:pid warning ...", in local time, if `level` is
/// enabled. Not for hot paths.
template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> text, Args&&... args) {
  if (log_enabled(level)) log_text(level, fmt::format(text, std::forward<Args>(args)...));
}
/// One line of level info, "... info INIT ...", if that is enabled for `subsystem`.
template <typename... Args>
void log(LogSubsystem subsystem, fmt::format_string<Args...> text, Args&&... args) {
  if (log_enabled(subsystem))
    log_text(LogLevel::info,
             fmt::format("{} {}", kSubsystemNames[static_cast<std::size_t>(subsystem)],
                         fmt::format(text, std::forward<Args>(args)...)));
}

}  // namespace anyccl
