#include "data.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

namespace digits {
namespace {

using anyccl::Code;
using anyccl::Result;
using anyccl::Status;

Result<std::string> read_gz(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) return Status(Code::system_error, "cannot open " + path + ": " + std::strerror(errno));
  std::string text;
  std::array<char, 64 * 1024> block{};
  for (;;) {
    const int got = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()));
    if (got < 0) {
      int code = 0;
      return Status(Code::system_error, "cannot read " + path + ": " + gzerror(file.get(), &code));
    }
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
  }
}

/// Reads `line` into `numbers`; false unless it is exactly as many numbers from 0 to 16.
bool parse(std::string_view line, std::array<int, kPixels + 1>& numbers) {
  const char* at = line.data();
  const char* const end = at + line.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && (at == end || *at++ != ',')) return false;
    const auto [next, error] = std::from_chars(at, end, numbers[i]);
    if (error != std::errc() || numbers[i] < 0 || numbers[i] > 16) return false;
    at = next;
  }
  return at == end && numbers[kPixels] < static_cast<int>(kClasses);
}

void add(Images& set, const std::array<int, kPixels + 1>& numbers) {
  for (std::size_t p = 0; p < kPixels; ++p) {
    set.images.push_back(static_cast<float>(numbers[p]) / 16.0F);
  }
  set.labels.push_back(numbers[kPixels]);
}

}  // namespace

Result<DataSet> load(const std::string& path) {
  const Result<std::string> text = read_gz(path);
  if (!text.ok()) return text.status();
  DataSet data;
  std::array<int, kPixels + 1> numbers{};
  std::size_t row = 0;
  for (std::string_view rest = *text; !rest.empty(); ++row) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!parse(line, numbers)) {
      return Status(Code::invalid_argument, path + ", line " + std::to_string(row + 1) +
                                                ": not 64 pixels from 0 to 16 and a digit");
    }
    add(row % 5 == 4 ? data.test : data.train, numbers);
  }
  if (data.test.size() == 0) return Status(Code::invalid_argument, path + ": too few images");
  return data;
}

}  // namespace digits
