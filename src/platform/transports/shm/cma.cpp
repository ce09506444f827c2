#include "platform/transports/shm/cma.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"

namespace anyccl::shm {
namespace {

constexpr std::size_t kMostPerCall = std::size_t{1} << 30;  // the kernel takes less than 2 GiB

}  // namespace

bool CmaReader::is_readable(const std::byte* memory, std::size_t bytes) {
  if (bytes == 0) return true;
  if (::prctl(PR_GET_DUMPABLE) != 1) return false;  // others may not look, from now on
  std::byte ends[2];
  auto* const first = const_cast<std::byte*>(memory);
  const iovec here{ends, sizeof ends}, there[2] = {{first, 1}, {first + bytes - 1, 1}};
  return ::process_vm_readv(::getpid(), &here, 1, there, 2, 0) == sizeof ends;
}

bool CmaReader::is_fast() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") != 0;  // measured on Cascade Lake; not so on Zen 5
#else
  return false;
#endif
}

Status CmaReader::read(std::byte* into, std::uint64_t address, std::size_t bytes) const {
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, kMostPerCall);
    const iovec here{into, part}, there{reinterpret_cast<void*>(address), part};
    const ssize_t n = ::process_vm_readv(process_->pid, &here, 1, &there, 1, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == ESRCH) return ended();
    if (n <= 0)
      return system_error(n < 0 ? errno : EFAULT,
                          "read the memory of process {} (ANYCCL_SHM_COPY=staged does without)",
                          process_->pid);
    into += n;
    address += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  // Its number may have gone to a new process: only who is still alive was surely read.
  pollfd exit{process_->handle.get(), POLLIN, 0};
  int ready = -1;
  do ready = ::poll(&exit, 1, 0);
  while (ready < 0 && errno == EINTR);
  return ready == 0 ? Status() : ended();
}

Status CmaReader::ended() const {
  return error(Code::remote_error, "process {} has ended", process_->pid);
}

}  // namespace anyccl::shm
