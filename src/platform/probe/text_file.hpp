#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace anyccl::probe {

/// The whole text of a small file of /proc or /sys; empty if it cannot be read.
inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Its first line, without the end.
inline std::string read_line(const std::string& path) {
  const std::string text = read_text(path);
  return text.substr(0, text.find('\n'));
}

}  // namespace anyccl::probe
