#include "text_file.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>

#include "base/error.hpp"

namespace anyccl::cli {

Result<std::string> text_of_file(const std::string& file) {
  std::ifstream in(file);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return system_error(errno, "read {}", file);
  return text;
}

}  // namespace anyccl::cli
