#include "base/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>

#include "base/error.hpp"
#include "base/fork.hpp"

namespace anyccl {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
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

std::atomic<std::uint32_t> subsystems{~0U};

std::string host_name() {
  char host[256] = "?";
  ::gethostname(host, sizeof host - 1);
  return host;
}

std::string pattern() {
  return fmt::format("anyccl %Y-%m-%d %H:%M:%S.%e {}:%P %l %v", host_name());
}

/// Guards where lines go, which set_log_file() may change while other threads write.
std::mutex& log_mutex() {
  static std::mutex* const instance = [] {
    auto* made = new std::mutex;
    hold_across_forks(*made);
    return made;
  }();
  return *instance;
}

/// With the mutex.
const std::shared_ptr<spdlog::sinks::dist_sink_st>& log_sinks() {
  static auto* const instance = new auto(std::make_shared<spdlog::sinks::dist_sink_st>(
      std::vector<spdlog::sink_ptr>{std::make_shared<spdlog::sinks::stderr_sink_st>()}));
  return *instance;
}

// A logger of our own, never in spdlog's registry: the process may hold another copy of it.
// Never destroyed: a stream's thread may write during exit.
spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("anyccl", log_sinks());
    made->set_pattern(pattern());
    made->set_level(spdlog::level::warn);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

/// The names of files of this process: %h is the host, %p the process.
std::string expand_path(std::string path) {
  const auto replace = [&](std::string_view what, const std::string& with) {
    for (std::size_t at = 0; (at = path.find(what, at)) != std::string::npos; at += with.size())
      path.replace(at, what.size(), with);
  };
  replace("%h", host_name());
  replace("%p", std::to_string(::getpid()));
  return path;
}

}  // namespace

Status set_log_file(const std::string& path) {
  static std::string current;
  const std::lock_guard lock(log_mutex());
  const std::string wanted = expand_path(path);
  if (wanted == current) return {};
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(wanted);
    sink->set_pattern(pattern());
    log_sinks()->set_sinks({std::move(sink)});
  } catch (const spdlog::spdlog_ex& problem) {
    return error(Code::system_error, "ANYCCL_DEBUG_FILE={}: {}", path, problem.what());
  }
  current = wanted;
  return {};
}
void set_log_level(LogLevel level) {
  logger().set_level(spdlog_level(level));
}
void set_log_subsystems(std::uint32_t bits) {
  subsystems.store(bits, std::memory_order_relaxed);
}
bool log_enabled(LogSubsystem subsystem) {
  return log_enabled(LogLevel::info) &&
         (subsystems.load(std::memory_order_relaxed) >> static_cast<int>(subsystem) & 1U) != 0;
}
bool log_enabled(LogLevel level) {
  return logger().should_log(spdlog_level(level));
}
void log_text(LogLevel level, std::string_view text) try {
  const std::lock_guard lock(log_mutex());
  logger().log(spdlog_level(level), text);
} catch (const std::bad_alloc&) {  // the line is lost
}

}  // namespace anyccl
