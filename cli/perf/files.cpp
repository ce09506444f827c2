#include "perf/files.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/error.hpp"

namespace anyccl::cli {

Result<TemporaryFolder> TemporaryFolder::create() {
  std::string path = (std::filesystem::temp_directory_path() / "anyccl-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) return system_error(errno, "create {}", path);
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<PendingFile> PendingFile::create(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code problem;
  if (!folder.empty()) std::filesystem::create_directories(folder, problem);
  if (problem) return system_error(problem.value(), "create the folder {}", folder.string());
  std::string temporary = path + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return system_error(errno, "write {}", path);
  return PendingFile(path, std::move(temporary), std::move(fd));
}

PendingFile::~PendingFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status PendingFile::commit(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd_.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(errno, "write {}", path_);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    return system_error(errno, "write {}", path_);
  temporary_.clear();
  return {};
}

}  // namespace anyccl::cli
