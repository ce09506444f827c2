#pragma once
// A runtime over the driver, for torch's device "simulated": current devices and streams of each
// thread, and memory of the host that copies go by.

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstddef>

#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::simulated_device {

/// Throws a RuntimeError with the name of the driver's function, unless it has succeeded.
void check(cuda::Error error, const char* function);
#define SIMULATED_CALL(function, ...) \
  ::anyccl::simulated_device::check(::function(__VA_ARGS__), #function)

/// 0 if there is no driver. Starts the driver; a process that is forked later cannot use it.
c10::DeviceIndex device_count() noexcept;
c10::DeviceIndex current_device();
void set_device(c10::DeviceIndex device);

/// The context of a device is that of this thread, as long as this lives.
class InContext {
 public:
  explicit InContext(c10::DeviceIndex device);
  ~InContext();
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
};

/// Stream 0 is the default one, and the next ones are a pool.
c10::Stream stream_of(c10::DeviceIndex device, c10::StreamId id);
c10::Stream current_stream(c10::DeviceIndex device);
c10::Stream exchange_stream(c10::Stream stream);
c10::Stream stream_from_pool(c10::DeviceIndex device);
c10::Stream new_stream(c10::DeviceIndex device);
cuda::Stream native(c10::Stream stream);
void synchronize(c10::Stream stream);

/// Copies bytes of a device into the host's memory; returns when they are there, after the work of
/// the current stream.
void download(c10::DeviceIndex device, void* to, const void* from, std::size_t bytes);

/// Bytes of the host on their way to a device. They are copied here at once, and go there in the
/// current stream, behind the caller's back.
class Upload {
 public:
  Upload(c10::DeviceIndex device, const void* from, std::size_t bytes);
  /// After its last copy.
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;
  void copy(void* to, std::size_t offset, std::size_t bytes) const;

 private:
  const InContext context_;
  const c10::Stream stream_;
  struct Staging& staging_;
};

}  // namespace anyccl::simulated_device
