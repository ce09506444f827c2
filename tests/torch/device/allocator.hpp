#pragma once
// Memory of the device "simulated". As torch's allocator for CUDA does, this gives a freed block at
// once to the next tensor of the same stream, whatever that stream has still to do with it.

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

namespace anyccl::simulated_device {

/// The allocator of the current device and its current stream.
c10::Allocator& allocator();
/// A block that is freed is not used again before the stream has done what it has to do then.
void record_stream(const c10::DataPtr& memory, c10::Stream stream);
/// Gives the storage memory of this size, with as much of its content as there is room for.
void resize(const c10::Storage& storage, std::size_t bytes);

}  // namespace anyccl::simulated_device
