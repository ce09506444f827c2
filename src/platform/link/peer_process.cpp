#include "platform/link/peer_process.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/error.hpp"

namespace anyccl::link {
namespace {

/// The first version of the kernel's struct pidfd_info, which headers of Debian 12 lack.
struct PidfdInfo {
  std::uint64_t mask = 0;
  std::uint64_t cgroup = 0;
  std::uint32_t pid_and_credentials[11] = {};
  std::int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kWithExitCode = 1U << 3;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD

/// The status of a process that has been waited for, as waitpid() gave it.
std::optional<int> status_by_pidfd(int socket) {
  int raw = -1;
  socklen_t size = sizeof raw;
  if (::getsockopt(socket, SOL_SOCKET, kPeerPidfd, &raw, &size) != 0) return std::nullopt;
  const UniqueFd pidfd(raw);
  PidfdInfo info;
  info.mask = kWithExitCode;
  if (::ioctl(pidfd.get(), kGetInfo, &info) != 0 || (info.mask & kWithExitCode) == 0)
    return std::nullopt;
  return info.exit_code;
}

/// The status of a process that is ending, or that nobody has waited for yet. Others, who may not
/// see it, find 0 there, too.
std::optional<int> status_by_proc(const ucred& peer) {
  constexpr unsigned long kExiting = 0x4;  // PF_EXITING of the kernel
  std::ifstream file(fmt::format("/proc/{}/stat", peer.pid));
  std::string text;
  if (!std::getline(file, text) || text.rfind(')') == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(text.rfind(')') + 1));  // from the third on
  std::string field;
  unsigned long flags = 0;
  for (int number = 3; number <= 52 && fields >> field; ++number) {
    if (number == 9) flags = std::strtoul(field.c_str(), nullptr, 10);
    if (number != 52 || (flags & kExiting) == 0) continue;
    const int status = std::atoi(field.c_str());
    if (status != 0 || (peer.uid == ::geteuid() && peer.gid == ::getegid())) return status;
  }
  return std::nullopt;
}

}  // namespace

Result<PeerProcess> PeerProcess::of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return system_error(errno, "who is at the other end of a local socket");
  UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
  if (!handle) return system_error(errno, "open process {}", peer.pid);
  PeerProcess process;
  process.handle = PrivateFd(std::move(handle));
  process.pid = peer.pid;
  return process;
}

std::string how_ended(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid == 0 ||
      peer.pid == ::getpid())
    return "";
  std::optional<int> status = status_by_pidfd(socket);
  if (!status) status = status_by_proc(peer);
  if (!status) return "";
  if (WIFSIGNALED(*status))
    return fmt::format(" (killed by signal {}, {})", WTERMSIG(*status),
                       ::strsignal(WTERMSIG(*status)));
  return fmt::format(" (exit code {})", WEXITSTATUS(*status));
}

}  // namespace anyccl::link
