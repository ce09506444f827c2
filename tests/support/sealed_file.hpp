#pragma once
// A program's own shared memory, for tests.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace anyccl::test {

struct SealedFile {
  explicit SealedFile(std::size_t size, int seals = F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE)
      : fd(::memfd_create("of_the_program", MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes(size) {
    if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return;
    at = static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ::fcntl(fd, F_ADD_SEALS, seals);
  }
  ~SealedFile() {
    ::munmap(at, bytes);
    ::close(fd);
  }
  SealedFile(const SealedFile&) = delete;
  SealedFile& operator=(const SealedFile&) = delete;

  int fd;
  std::size_t bytes;
  std::byte* at = nullptr;
};

}  // namespace anyccl::test
