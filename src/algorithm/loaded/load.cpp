#include "algorithm/loaded/load.hpp"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <set>

#include "base/error.hpp"
#include "base/per_process.hpp"
#include "base/whole_file.hpp"

namespace anyccl {
namespace {

namespace fs = std::filesystem;

/// Held while algorithms are added. A forked child has one of its own.
struct Loading {
  std::mutex mutex;
};

/// The files that a path stands for.
Result<std::vector<std::string>> files_of(const std::string& path) {
  std::error_code problem;
  if (!fs::is_directory(path, problem)) return std::vector<std::string>{path};
  std::set<std::string> files;
  fs::directory_iterator entries(path, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem))
    if (entries->path().extension() == ".json") files.insert(entries->path().string());
  if (problem) return system_error(problem.value(), "read folder {}", path);
  if (files.empty())
    return error(Code::invalid_argument, "folder {} has no *.json with an algorithm", path);
  return std::vector<std::string>(files.begin(), files.end());
}

Result<const LoadedAlgorithm*> add(std::unique_ptr<LoadedAlgorithm> fresh) {
  const Algorithm& algorithm = fresh->algorithm();
  const Algorithm* const known = find_algorithm(algorithm.collective, algorithm.name);
  if (known == nullptr) {
    add_algorithm(algorithm);
    return fresh.release();  // all_algorithms() has it for ever
  }
  if (known->loaded == nullptr)
    return error(Code::invalid_argument, "{}: anyccl has a {} of its own: choose another name",
                 fresh->file(), id(*known));
  if (known->loaded->hash() == fresh->hash()) return known->loaded;
  return error(Code::invalid_argument,
               "{} has another {} than {}, which was loaded before ({:08x} and {:08x})",
               fresh->file(), id(*known), known->loaded->file(), fresh->hash() >> 32,
               known->loaded->hash() >> 32);
}

}  // namespace

Result<WrittenAlgorithm> read_algorithm(const std::string& file) {
  ANYCCL_TRY(const std::string text, read_whole_file(file, FormLimits::kBytes));
  return parse_algorithm(text, file == "-" ? "standard input" : file);
}

Result<std::vector<const LoadedAlgorithm*>> load_algorithm_files(const std::string& paths) {
  std::vector<const LoadedAlgorithm*> all;
  std::string_view rest = paths;
  while (!rest.empty()) {
    const std::string path(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(rest.size(), path.size() + 1));
    if (path.empty()) continue;
    ANYCCL_TRY(const std::vector<std::string> files, files_of(path));
    for (const std::string& file : files) {
      ANYCCL_TRY(WrittenAlgorithm text, read_algorithm(file));
      auto fresh = std::make_unique<LoadedAlgorithm>(std::move(text), file);
      const std::lock_guard lock(per_process<Loading>().mutex);
      ANYCCL_TRY(const LoadedAlgorithm* const added, add(std::move(fresh)));
      all.push_back(added);
    }
  }
  return all;
}

}  // namespace anyccl
