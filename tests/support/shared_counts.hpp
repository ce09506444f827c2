#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <new>

namespace anyccl::test {

/// Counts that the processes of a test share without the library, in memory that is theirs after fork.
struct Counts {
  std::atomic<int> over{0};       // ranks that are through
  std::atomic<pid_t> stopped{0};  // the process that stops itself
};

class SharedCounts {
 public:
  SharedCounts()
      : counts_(new (::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Counts) {}
  ~SharedCounts() { ::munmap(counts_, sizeof(Counts)); }
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;
  Counts* operator->() const { return counts_; }

 private:
  Counts* counts_;
};

}  // namespace anyccl::test
