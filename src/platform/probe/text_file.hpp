#pragma once
// All probes read the small files of /proc and /sys with the functions here.

#include <fstream>
#include <sstream>
#include <string>

namespace anyccl::probe {

/// The whole text of a small file of /proc or /sys; empty if it cannot be read, as a folder.
inline std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();  // an iterator would throw at a folder
  return text.str();
}

/// Its first line, without the end.
inline std::string read_line(const std::string& path) {
  const std::string text = read_text(path);
  return text.substr(0, text.find('\n'));
}

}  // namespace anyccl::probe
