#pragma once
// Memory of devices, by the CUDA driver of the program.

#include <cstddef>

namespace anyccl::nccl {

/// Whether the program has loaded the driver and uses a device in this thread.
bool uses_device();

/// Allocates memory of the device of this thread. Returns the driver's error, 0 if none. After
/// uses_device() alone.
int allocate_on_device(void** place, std::size_t bytes);
/// Frees memory of a device. Returns the driver's error, 0 if none.
int free_on_device(void* memory);

/// False, too, if the program has not loaded the driver.
bool is_memory_of_device(const void* memory);

}  // namespace anyccl::nccl
