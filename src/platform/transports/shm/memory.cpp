#include "platform/transports/shm/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/error.hpp"
#include "base/round_up.hpp"
#include "base/signals.hpp"
#include "platform/probe/cgroup.hpp"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace anyccl::shm {

Mapping::Mapping(Mapping&& other) noexcept
    : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(at_, other.at_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
Mapping::~Mapping() {
  if (at_ != nullptr) ::munmap(at_, bytes_);
}

namespace {

/// Makes a mapping that a forked child does not get.
Result<Mapping> map(int fd, std::size_t bytes, int protection, int flags, const char* what) {
  void* at = ::mmap(nullptr, bytes, protection, flags, fd, 0);
  if (at == MAP_FAILED) return system_error(errno, "map {} bytes of {}", bytes, what);
  ::madvise(at, bytes, MADV_DONTFORK);
  return Mapping(at, bytes);
}

Status grow_file(int fd, std::size_t bytes, const char* what) {
  const FileSizeSignalHeld held;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) == 0) return {};
  return system_error(errno, "reserve {} bytes for {}{}", bytes, what,
                      errno == EFBIG ? " (see the limit RLIMIT_FSIZE, ulimit -f)" : "");
}

Result<SharedMemory> create_unsealed(std::size_t bytes, const char* what) {
  SharedMemory memory;
  const std::string name = fmt::format("anyccl: {}", what);  // as /proc/PID/maps has it
  memory.fd.reset(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.fd) return system_error(errno, "memfd_create for {}", what);
  ANYCCL_CHECK(grow_file(memory.fd.get(), bytes, what));
  ANYCCL_TRY(memory.mapping, map(memory.fd.get(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED, what));
  return memory;
}

Status seal(const SharedMemory& memory, bool writable, const char* what) {
  // After our own mapping: FUTURE_WRITE leaves that one writable and forbids all later ones.
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | (writable ? 0 : F_SEAL_FUTURE_WRITE);
  if (::fcntl(memory.fd.get(), F_ADD_SEALS, seals | F_SEAL_SEAL) != 0)
    return system_error(errno, "seal {}", what);
  return {};
}

/// A descriptor of the same file that nobody can write through, or none. Its mode keeps other users
/// from opening it again for writing.
UniqueFd reopen_for_reading(const UniqueFd& file) {
  if (::fchmod(file.get(), S_IRUSR) != 0) return {};
  UniqueFd reading(
      ::open(fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat ours {
  }, opened{};
  const bool same = reading && ::fstat(file.get(), &ours) == 0 &&
                    ::fstat(reading.get(), &opened) == 0 && ours.st_ino == opened.st_ino &&
                    ours.st_dev == opened.st_dev;
  return same ? std::move(reading) : UniqueFd();
}

}  // namespace

Result<SharedMemory> create_shared(std::size_t bytes, bool writable_by_peers, const char* what) {
  ANYCCL_TRY(SharedMemory memory, create_unsealed(bytes, what));
  ANYCCL_CHECK(seal(memory, writable_by_peers, what));
  return memory;
}

Result<SharedMemory> create_returnable(std::size_t bytes, const char* what) {
  ANYCCL_TRY(SharedMemory memory, create_unsealed(bytes, what));
  UniqueFd reading = reopen_for_reading(memory.fd);
  ANYCCL_CHECK(seal(memory, static_cast<bool>(reading), what));
  if (!reading) return memory;
  memory.fd = std::move(reading);
  memory.returned = SharedMemory::Returned::to_file;
  return memory;
}

bool give_back(const SharedMemory& memory, std::size_t offset, std::size_t bytes) {
  if (memory.returned == SharedMemory::Returned::never) return false;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = round_up(offset, page), end = (offset + bytes) / page * page;
  if (begin >= end) return true;
  const int advice =
      memory.returned == SharedMemory::Returned::to_file ? MADV_REMOVE : MADV_DONTNEED;
  return ::madvise(memory.mapping.data() + begin, end - begin, advice) == 0;
}

Status expect_left(std::size_t bytes) {
  const double left = probe::memory_left();
  if (static_cast<double>(bytes) <= left) return {};
  return error(
      Code::system_error,
      "{} bytes of shared memory: the memory limit of the cgroup leaves {} bytes: raise the "
      "limit, or give communicators less with buffSize",
      bytes, static_cast<std::uint64_t>(left));
}

Status populate(const SharedMemory& memory, std::size_t offset, std::size_t bytes) {
  bytes += offset % 4096;
  offset -= offset % 4096;
  if (bytes >= kWorthALook) ANYCCL_CHECK(expect_left(bytes));
  if (::madvise(memory.mapping.data() + offset, bytes, MADV_POPULATE_WRITE) == 0) return {};
  if (errno != EINVAL)  // EINVAL: a kernel before 5.14
    return system_error(errno, "{} bytes of shared memory (is /dev/shm or the memory limit full?)",
                        bytes);
  // The seal forbids fallocate and write, so touch the pages, and change nothing that another
  // thread may have there: here a shortage is a SIGBUS.
  for (std::size_t i = 0; i < bytes; i += 4096)
    std::atomic_ref(reinterpret_cast<unsigned char&>(memory.mapping.data()[offset + i]))
        .fetch_or(0, std::memory_order_relaxed);
  return {};
}

Result<Mapping> map_peer(int fd, std::size_t bytes, Access access, const char* what) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return system_error(errno, "look at {}", what);
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return error(Code::remote_error, "{} is not sealed against shrinking", what);
  if (static_cast<std::uint64_t>(info.st_size) < bytes)
    return error(Code::remote_error, "{} has {} bytes instead of {}", what, info.st_size, bytes);
  const int protection = access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  return map(fd, bytes, protection, MAP_SHARED, what);
}

Result<Mapping> create_private(std::size_t bytes, const char* what) {
  return map(-1, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, what);
}

}  // namespace anyccl::shm
