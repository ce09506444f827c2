#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace anyccl::cli {

/// "[#####---------------]  25 %, 1:30 left: all_reduce", for `done` from 0 to 1.
std::string progress_text(double done, double left_s, std::string_view what);

/// How far something long is, on stderr: a line that changes on a terminal, else one now and then.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  ///< Takes it from the terminal.
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(double done, double left_s, std::string_view what);

 private:
  using Clock = std::chrono::steady_clock;
  bool on_terminal_;
  Clock::time_point next_ = Clock::now();
};

}  // namespace anyccl::cli
