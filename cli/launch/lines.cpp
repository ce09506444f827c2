#include "launch/lines.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace anyccl::cli {

std::string LinePrefixer::feed(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const std::size_t room = kLongestLine - partial_.size();
    const std::size_t end = bytes.find('\n');
    const std::size_t taken = std::min({end, bytes.size(), room});
    partial_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken == end ? taken + 1 : taken);
    if (taken == end || partial_.size() == kLongestLine) {
      lines += prefix_ + partial_ + '\n';
      partial_.clear();
    }
  }
  return lines;
}

std::string LinePrefixer::flush() {
  if (partial_.empty()) return {};
  std::string line = prefix_ + partial_ + '\n';
  partial_.clear();
  return line;
}

std::string rank_prefix(int rank, bool coloured) {
  if (!coloured) return fmt::format("[{}] ", rank);
  constexpr int kFirstColour = 31, kColours = 6;  // red to cyan
  return fmt::format("\x1b[{}m[{}]\x1b[0m ", kFirstColour + rank % kColours, rank);
}

}  // namespace anyccl::cli
