#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::cli {

/// A folder that goes away again.
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

/// A file that is there completely or, until commit(), not at all. Only its user can write it.
class PendingFile {
 public:
  /// Creates what is missing of the folders above it. Errors: system_error.
  static Result<PendingFile> create(const std::string& path);
  PendingFile(PendingFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        fd_(std::move(other.fd_)) {}
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  /// Takes the place of what was there before.
  Status commit(std::string_view text);

 private:
  PendingFile(std::string path, std::string temporary, UniqueFd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}
  std::string path_, temporary_;
  UniqueFd fd_;
};

}  // namespace anyccl::cli
