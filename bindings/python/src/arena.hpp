#pragma once
// Memory that local peers read where it lies, for arrays of NumPy.

#include <nanobind/nanobind.h>

namespace anyccl::python {

/// Memory of anycclMemAlloc, as a buffer.
class ArenaBlock {
 public:
  explicit ArenaBlock(std::size_t bytes);
  ArenaBlock(const ArenaBlock&) = delete;
  ArenaBlock& operator=(const ArenaBlock&) = delete;
  ~ArenaBlock();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

void bind_arena(nanobind::module_& m);

}  // namespace anyccl::python
