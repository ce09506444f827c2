#pragma once

#include <string>
#include <string_view>

namespace anyccl::cli {

/// Cuts a stream of bytes into lines and puts a prefix before each, also where a carriage return
/// begins it anew.
class LinePrefixer {
 public:
  /// A line longer than this is cut: a program that never ends its line must not fill the memory.
  static constexpr std::size_t kLongestLine = 64 * 1024;

  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}
  /// Takes the next bytes and returns the lines that are complete, each with its prefix.
  std::string feed(std::string_view bytes);
  /// What there is of a line that is not complete, such as a prompt; what follows continues it.
  std::string take_begun_line();
  bool has_partial() const { return !partial_.empty(); }
  /// A line was shown and is not complete.
  bool is_begun() const { return begun_; }
  /// Somebody else writes: ends that line; what follows is one of its own.
  std::string interrupt();
  /// The rest as a line of its own; "" if the last line was complete.
  std::string end_line();

 private:
  std::string take_partial();

  std::string prefix_, partial_;
  bool begun_ = false;
};

/// "[3] ", in one of six colours if `coloured`.
std::string rank_prefix(int rank, bool coloured);

}  // namespace anyccl::cli
