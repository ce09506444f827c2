#include "hosts_flag.hpp"

#include "base/error.hpp"

namespace anyccl::cli {

Result<std::vector<int>> host_of(const std::vector<int>& ranks_on_each, int ranks,
                                 std::string_view flag) {
  std::vector<int> of;
  for (std::size_t h = 0; h < ranks_on_each.size(); ++h) {
    if (ranks_on_each[h] < 1 || ranks_on_each[h] > ranks)
      return error(Code::invalid_argument, "{}: one cannot have {} of {} ranks", flag,
                   ranks_on_each[h], ranks);
    of.insert(of.end(), static_cast<std::size_t>(ranks_on_each[h]), static_cast<int>(h));
  }
  if (!of.empty() && of.size() != static_cast<std::size_t>(ranks))
    return error(Code::invalid_argument, "{}: these have {} ranks, not {}", flag, of.size(), ranks);
  return of;
}

}  // namespace anyccl::cli
