#pragma once

#include <string>
#include <string_view>

#include "launch/lines.hpp"

namespace anyccl::cli {

/// One of the launcher's own outputs, to which ranks and the launcher write lines. It never waits
/// for a reader: what does not fit is kept.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}

  /// Takes what `lines` has returned, or, if it is null, whole lines of the launcher, and writes
  /// what fits now. Drops the text once nobody reads any more.
  void add(LinePrefixer* lines, std::string_view text);
  /// Writes what fits now. True if that was something.
  bool write_some();
  /// There is more to write; -1 else.
  int pending_fd() const { return has_more() ? fd_ : -1; }
  bool has_more() const { return at_ < pending_.size(); }
  /// So much is kept that no more should be read from ranks.
  bool is_full() const { return pending_.size() - at_ >= kMost; }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 20;

  int fd_;  // -1: nobody reads any more
  std::string pending_;
  std::size_t at_ = 0;             // what of it is written
  LinePrefixer* begun_ = nullptr;  // whose line has a begin here and no end
};

/// Whether both are the same file, or terminal.
bool is_same_file(int a, int b);

}  // namespace anyccl::cli
