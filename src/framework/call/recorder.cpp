#include "framework/call/recorder.hpp"

#include <sys/mman.h>

#include <bit>

namespace anyccl {

/// Pages of their own: the heap would write to them, and a communicator that is used little should
/// cost little.
Recorder::Recorder(std::size_t entries, bool is_traced) : is_traced_(is_traced) {
  if (entries == 0) return;
  entries = std::bit_ceil(entries);  // a division would cost as much as the rest of a record
  const std::size_t bytes = entries * sizeof(RecordedCall);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  ring_ = {static_cast<RecordedCall*>(memory), Unmap{bytes}};
  entries_ = entries;
}

void Recorder::Unmap::operator()(RecordedCall* ring) const {
  ::munmap(ring, bytes);
}

}  // namespace anyccl
