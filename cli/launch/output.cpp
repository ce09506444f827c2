#include "launch/output.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace anyccl::cli {

void Output::add(LinePrefixer* lines, std::string_view text) {
  if (fd_ < 0 || text.empty()) return;
  if (begun_ != nullptr && begun_ != lines) pending_ += begun_->interrupt();
  pending_ += text;
  begun_ = lines != nullptr && lines->is_begun() ? lines : nullptr;
  write_some();
}

bool Output::write_some() {
  constexpr std::size_t kAtomic = 4096;  // PIPE_BUF: what poll() says that a pipe has room for
  bool wrote = false;
  while (has_more() && fd_ >= 0) {
    pollfd entry{fd_, POLLOUT, 0};
    if (::poll(&entry, 1, 0) != 1) break;
    const ssize_t written =
        ::write(fd_, pending_.data() + at_, std::min(pending_.size() - at_, kAtomic));
    if (written >= 0) {
      at_ += static_cast<std::size_t>(written);
      wrote = true;
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      fd_ = -1;  // the ranks go on
    }
  }
  if (!has_more() || fd_ < 0 || at_ >= kMost) {
    pending_.erase(0, fd_ < 0 ? pending_.size() : at_);
    at_ = 0;
  }
  return wrote;
}

bool is_same_file(int a, int b) {
  struct stat of_a {
  }, of_b{};
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

}  // namespace anyccl::cli
