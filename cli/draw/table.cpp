#include "draw/table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace anyccl::cli {

std::string table(const std::vector<Line>& lines) {
  std::vector<std::size_t> widths(lines[0].size());
  for (const Line& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const Line& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i)
      row += fmt::format("{:<{}}  ", line[i], widths[i]);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
  return text;
}

}  // namespace anyccl::cli
