#include "framework/tuning/machine_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "platform/probe/machine.hpp"

namespace anyccl {
namespace {

/// A user who can write the file decides how this user's programs communicate.
Status check_owner(int fd, const std::string& file) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) return system_error(errno, "look at {}", file);
  if (!S_ISREG(about.st_mode)) return error(Code::invalid_usage, "{} is not a file", file);
  if (about.st_uid != ::geteuid())
    return error(Code::invalid_usage, "{} belongs to user {}, not to user {} of this process", file,
                 about.st_uid, ::geteuid());
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return error(Code::invalid_usage,
                 "other users may write {}: if none of them has, run chmod go-w on it", file);
  return {};
}

Result<std::string> read_all(int fd, const std::string& file) {
  std::string text;
  char buffer[16384];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(errno, "read {}", file);
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

}  // namespace

std::string machine_table_file(const std::string& cache_folder) {
  if (cache_folder.empty()) return "";
  static const std::string mine = fingerprint(probe::this_machine());  // it stays the same machine
  return fmt::format("{}/anyccl/tuned-{}.json", cache_folder, mine);
}

Result<std::shared_ptr<const TunerTable>> read_machine_table(const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::shared_ptr<const TunerTable>();
  if (!fd) return system_error(errno, "open {}", file);
  ANYCCL_CHECK(check_owner(fd.get(), file));
  ANYCCL_TRY(const std::string text, read_all(fd.get(), file));
  Result<TunerTable> table = TunerTable::parse(text, file);
  if (!table.ok())
    return error(table.status().code(), "{}: remove it, or write it anew with `anyccl tune`",
                 table.status().message());
  return std::make_shared<const TunerTable>(*std::move(table));
}

}  // namespace anyccl
