#include "platform/transports/shm/mapped_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/error.hpp"

namespace anyccl::shm {
namespace {

/// A line of /proc/self/maps.
struct Mapped {
  std::uintptr_t begin = 0, end = 0;
  std::size_t offset = 0;
  unsigned major = 0, minor = 0;
  std::uint64_t inode = 0;
  bool shared = false;
};

bool parse(const std::string& line, Mapped& m) {
  char rights[5] = {};
  if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %x:%x %lu", &m.begin, &m.end, rights, &m.offset,
                  &m.major, &m.minor, &m.inode) != 7)
    return false;
  m.shared = rights[3] == 's';
  return true;
}

Status check_seals(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0)
    return error(Code::invalid_argument, "descriptor {} is not of a memfd: it has no seals", fd);
  if ((seals & F_SEAL_SHRINK) == 0)
    return error(Code::invalid_argument, "the file is not sealed with F_SEAL_SHRINK");
  if ((seals & (F_SEAL_FUTURE_WRITE | F_SEAL_WRITE)) == 0)
    return error(Code::invalid_argument, "the file is not sealed with F_SEAL_FUTURE_WRITE");
  return {};
}

}  // namespace

Status check_mapping(const void* memory, std::size_t bytes, int fd, std::size_t offset) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return system_error(errno, "look at descriptor {}", fd);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (bytes == 0 || begin + bytes < begin || offset + bytes < offset)
    return error(Code::invalid_argument, "{} bytes at {}, from {} on, make no sense", bytes, memory,
                 offset);
  if (static_cast<std::uint64_t>(file.st_size) < offset + bytes)
    return error(Code::invalid_argument, "the file has {} bytes instead of {}", file.st_size,
                 offset + bytes);
  ANYCCL_CHECK(check_seals(fd));
  std::uintptr_t at = begin;  // up to here it is
  std::ifstream maps("/proc/self/maps");
  Mapped m;
  for (std::string line; at < begin + bytes && std::getline(maps, line);)
    if (parse(line, m) && m.begin <= at && at < m.end && m.shared && m.inode == file.st_ino &&
        makedev(m.major, m.minor) == file.st_dev &&
        at - m.begin + m.offset == offset + (at - begin))
      at = m.end;
  if (at >= begin + bytes) return {};
  return error(Code::invalid_argument,
               "{} ({} bytes) is not a MAP_SHARED mapping of descriptor {} from {} on", memory,
               bytes, fd, offset);
}

}  // namespace anyccl::shm
