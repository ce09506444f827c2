#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace anyccl::cli {

/// "[#####---------------]  25 %, 1:30 left: all_reduce", for `done` from 0 to 1.
std::string progress_text(double done, double left_s, std::string_view what);

/// The progress of a long task, on stderr: one changing line on a terminal, else one now and then.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  ///< Clears the line on a terminal.
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Writes at most every 0.1 s on a terminal and every 10 s elsewhere; calls between do nothing.
  void show(double done, double left_s, std::string_view what);

 private:
  using Clock = std::chrono::steady_clock;
  bool on_terminal_;
  Clock::time_point next_ = Clock::now();
};

}  // namespace anyccl::cli
