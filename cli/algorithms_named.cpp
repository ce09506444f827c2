#include "algorithms_named.hpp"

#include <fmt/ranges.h>

#include <deque>

#include "algorithm/loaded/load.hpp"
#include "base/error.hpp"

namespace anyccl::cli {

Result<std::vector<const Algorithm*>> algorithms_named(std::string_view what) {
  if (what.ends_with(".json")) return algorithm_in(std::string(what));
  std::vector<const Algorithm*> found;
  for (const Algorithm* algorithm : all_algorithms())
    if (what == "all" || what == id(*algorithm) || what == algorithm->name ||
        what == name(algorithm->collective))
      found.push_back(algorithm);
  if (found.empty())
    return error(Code::invalid_argument, "there is no algorithm '{}' (see anyccl info)", what);
  return found;
}

Result<const Algorithm*> algorithm_named(std::string_view what) {
  ANYCCL_TRY(const std::vector<const Algorithm*> found, algorithms_named(what));
  if (found.size() == 1) return found[0];
  std::vector<std::string> names;
  names.reserve(found.size());
  for (const Algorithm* algorithm : found) names.push_back(id(*algorithm));
  return error(Code::invalid_argument, "'{}' is {} algorithms, name one of them: {}", what,
               found.size(), fmt::join(names, ", "));
}

Result<std::vector<const Algorithm*>> algorithm_in(const std::string& file) {
  static std::deque<LoadedAlgorithm> loaded;  // for as long as the verb runs
  ANYCCL_TRY(WrittenAlgorithm text, read_algorithm(file));
  return std::vector<const Algorithm*>{&loaded.emplace_back(std::move(text), file).algorithm()};
}

}  // namespace anyccl::cli
