#include "base/whole_file.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"
#include "base/signals.hpp"
#include "base/unique_fd.hpp"

namespace anyccl {
namespace {

bool write_all(const UniqueFd& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

/// What the rename would destroy for everybody: root can replace /dev/null.
bool is_special(const std::string& path) {
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode);
}

}  // namespace

Status write_whole_file(const std::string& path, std::string_view text) {
  constexpr mode_t kReadable = 0644;
  if (is_special(path))
    return error(Code::system_error, "write {}: something is there that is no plain file", path);
  const FileSizeSignalHeld held;
  std::string temporary = path + ".XXXXXX";  // six letters that mkostemp() replaces
  UniqueFd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) return system_error(errno, "write {}", path);
  const bool written = write_all(file, text) && ::fchmod(file.get(), kReadable) == 0 &&
                       ::rename(temporary.c_str(), path.c_str()) == 0;
  if (written) return {};
  const int problem = errno;
  ::unlink(temporary.c_str());
  return system_error(problem, "write {}", path);
}

Result<std::string> read_whole_file(const std::string& path, std::size_t most) {
  const bool standard = path == "-";
  const std::string name = standard ? "the standard input" : path;
  const UniqueFd opened(standard ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!standard && !opened) return system_error(errno, "read {}", name);
  const int fd = standard ? STDIN_FILENO : opened.get();
  std::string text;
  for (;;) {
    constexpr std::size_t kPart = std::size_t{1} << 16;
    const std::size_t before = text.size();
    text.resize(before + kPart);
    const ssize_t n = ::read(fd, text.data() + before, kPart);
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(0, n)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(errno, "read {}", name);  // EISDIR
    if (n == 0) return text;
    if (text.size() > most)
      return error(Code::system_error, "read {}: it has more than {} bytes", name, most);
  }
}

}  // namespace anyccl
