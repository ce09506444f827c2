#pragma once

#include <string>
#include <string_view>

namespace anyccl::cli {

/// Cuts a stream of bytes into lines and puts a prefix before each.
class LinePrefixer {
 public:
  /// A line longer than this is cut: a program that never ends its line must not fill the memory.
  static constexpr std::size_t kLongestLine = 64 * 1024;

  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}
  /// Takes the next bytes and returns the lines that are complete, each with its prefix.
  std::string feed(std::string_view bytes);
  /// The rest as a line of its own; "" if the last line was complete.
  std::string flush();

 private:
  std::string prefix_, partial_;
};

/// "[3] ", in one of six colours if `coloured`.
std::string rank_prefix(int rank, bool coloured);

}  // namespace anyccl::cli
