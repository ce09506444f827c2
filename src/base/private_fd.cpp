#include "base/private_fd.hpp"

#include "base/fork.hpp"

namespace anyccl {

PrivateFd::PrivateFd(UniqueFd fd) : fd_(std::move(fd)) {
  watch_forks();
  generation_ = fork_generation();
  if (fd_) close_in_children(fd_.get());
}

UniqueFd PrivateFd::release() {
  if (!fd_) return {};
  if (generation_ != fork_generation()) {  // it was closed, and its number may be another's by now
    static_cast<void>(fd_.release());
    return {};
  }
  keep_in_children(fd_.get());
  return std::move(fd_);
}

}  // namespace anyccl
