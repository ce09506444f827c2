#include "launch/lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
      lines += take_partial() + '\n';
      begun_ = false;
    }
  }
  return lines;
}

std::string LinePrefixer::take_begun_line() {
  if (partial_.empty()) return {};
  std::string text = take_partial();
  begun_ = true;
  return text;
}

std::string LinePrefixer::interrupt() {
  return std::exchange(begun_, false) ? "\n" : "";
}

std::string LinePrefixer::end_line() {
  if (partial_.empty() && !begun_) return {};
  std::string line = take_partial() + '\n';
  begun_ = false;
  return line;
}

/// With the prefix at the begin of the line, and behind each carriage return that something
/// follows.
std::string LinePrefixer::take_partial() {
  std::string text = begun_ ? "" : prefix_;
  for (std::size_t i = 0; i < partial_.size(); ++i) {
    text += partial_[i];
    if (partial_[i] == '\r' && i + 1 < partial_.size()) text += prefix_;
  }
  partial_.clear();
  return text;
}

std::string rank_prefix(int rank, bool coloured) {
  if (!coloured) return fmt::format("[{}] ", rank);
  constexpr int kFirstColour = 31, kColours = 6;  // red to cyan
  return fmt::format("\x1b[{}m[{}]\x1b[0m ", kFirstColour + rank % kColours, rank);
}

}  // namespace anyccl::cli
