#pragma once
// Copies, and words that streams write or wait for: each function checks its arguments and puts the
// work into the stream.

#include <cstddef>
#include <cstdint>

#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::simulated {

/// Copies between devices and pinned memory, as engines may do it: early or late, and in pieces.
cuda::Error copy(cuda::Address to, cuda::Address from, std::size_t bytes, cuda::Stream stream);
cuda::Error fill(cuda::Address to, unsigned char value, std::size_t bytes, cuda::Stream stream);

/// Words are of 32 or 64 bits.
template <typename Word>
cuda::Error wait_for_word(cuda::Stream stream, cuda::Address at, Word value, unsigned flags);
template <typename Word>
cuda::Error write_word(cuda::Stream stream, cuda::Address at, Word value, unsigned flags);

}  // namespace anyccl::simulated
