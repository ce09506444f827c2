#pragma once
// A program may register memory that it has mapped itself from a file (anycclMemRegister). The
// arena calls check_mapping() then, which says whether the mapping and its file are as peers need
// them.

#include <cstddef>

#include "anyccl/status.hpp"

namespace anyccl::shm {

/// Whether memory[0, bytes) is a shared mapping in this process of the file `fd` from `offset` on,
/// and the file is sealed as peers must have it: it cannot shrink (a read would fault), and nobody
/// can map it for writing from now on. Errors: invalid_argument, saying what is missing.
Status check_mapping(const void* memory, std::size_t bytes, int fd, std::size_t offset);

}  // namespace anyccl::shm
