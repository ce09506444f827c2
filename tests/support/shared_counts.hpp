#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <new>

namespace anyccl::test {

/// Counts that the processes of a test share without the library, in memory that is theirs after
/// fork.
struct Counts {
  std::atomic<int> over{0};          // ranks that are through
  std::atomic<pid_t> stopped{0};     // the process that stops itself
  std::atomic<bool> resumed{false};  // it goes on
};

template <typename T>
class Shared {
 public:
  Shared()
      : all_(new (::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                         0)) T) {}
  ~Shared() { ::munmap(all_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator*() const { return *all_; }
  T* operator->() const { return all_; }

 private:
  T* all_;
};
using SharedCounts = Shared<Counts>;

}  // namespace anyccl::test
