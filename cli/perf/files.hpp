#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::cli {

/// A folder that the destructor removes.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// A file that appears only at commit(), and completely. Only its user can write it.
class PendingFile {
 public:
  /// Creates missing parent folders. Errors: system_error.
  static Result<PendingFile> create(const std::string& path);
  PendingFile(PendingFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        fd_(std::move(other.fd_)) {}
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  /// Replaces the file of that path.
  Status commit(std::string_view text);

 private:
  PendingFile(std::string path, std::string temporary, UniqueFd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}
  std::string path_, temporary_;
  UniqueFd fd_;
};

}  // namespace anyccl::cli
