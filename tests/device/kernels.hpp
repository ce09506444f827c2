#pragma once

#include <cstddef>

namespace anyccl::test {

/// sum[i] = left[i] + right[i], by the kernel test_add.
struct AddArgs {
  void* sum;
  const void* left;
  const void* right;
  std::size_t count;
};

}  // namespace anyccl::test
