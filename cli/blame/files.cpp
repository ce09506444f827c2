#include "blame/files.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/whole_file.hpp"

namespace anyccl::cli {
namespace {

using Take = std::function<Status(const std::string& text)>;

Status read_one(const std::string& path, const Take& take) {
  ANYCCL_TRY(const std::string text, read_whole_file(path));
  const Status taken = take(text);
  return taken.ok() ? taken : error(taken.code(), "{}: {}", path, taken.message());
}

Result<std::vector<std::string>> files_in(const std::string& folder, std::string_view prefix) {
  std::vector<std::string> files;
  std::error_code problem;
  for (const auto& file : std::filesystem::directory_iterator(folder, problem))
    if (const std::string name = file.path().filename().string();
        name.starts_with(prefix) && name.ends_with(".json"))
      files.push_back(file.path().string());
  if (problem) return error(Code::invalid_argument, "{} cannot be read", folder);
  std::sort(files.begin(), files.end());  // the report must not depend on the order of the disk
  return files;
}

}  // namespace

Status read_each(const std::vector<std::string>& paths, std::string_view prefix, const Take& take) {
  bool is_empty = true;
  for (const std::string& path : paths) {
    std::vector<std::string> files{path};
    std::error_code problem;
    if (std::filesystem::is_directory(path, problem)) {
      ANYCCL_TRY(files, files_in(path, prefix));
    }
    for (const std::string& file : files) {
      ANYCCL_CHECK(read_one(file, take));
      is_empty = false;
    }
  }
  return is_empty ? error(Code::invalid_argument, "there are no files {}*.json", prefix) : Status();
}

}  // namespace anyccl::cli
