#include "perf/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace anyccl::cli {

std::string progress_text(double done, double left_s, std::string_view what) {
  constexpr int kWidth = 20;
  done = std::clamp(done, 0.0, 1.0);
  const int filled = static_cast<int>(done * kWidth), left = static_cast<int>(std::ceil(left_s));
  return fmt::format("[{:#>{}}{:->{}}] {:3.0f} %, {}:{:02} left: {}", "", filled, "",
                     kWidth - filled, std::floor(100 * done), left / 60, left % 60, what);
}

ProgressLine::ProgressLine() : on_terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (on_terminal_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressLine::show(double done, double left_s, std::string_view what) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + (on_terminal_ ? std::chrono::milliseconds(100) : std::chrono::seconds(10));
  const std::string text = progress_text(done, left_s, what);
  fmt::print(stderr, "{}{}{}", on_terminal_ ? "\r" : "", text, on_terminal_ ? "\x1b[K" : "\n");
}

}  // namespace anyccl::cli
