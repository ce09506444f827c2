#pragma once
// Tensors of devices: which device those of a call are on, and the streams of torch there.

#include <c10/core/StreamGuard.h>

#include <optional>

#include "anyccl/device.h"
#include "anyccl/stream.h"
#include "torch.hpp"

namespace anyccl::torch {

/// Whether tensors of such devices may lie in memory that the library can copy. Of PrivateUse1 the
/// library alone knows the kind, as it asks the driver.
inline bool may_be_copied(c10::DeviceType type) {
  return type == c10::kCUDA || type == c10::kPrivateUse1;
}

/// The device of all tensors of a call; the CPU if there are none. Refuses tensors of several.
c10::Device common_device(const char* name, at::TensorList inputs, at::TensorList outputs);
/// The devices of the tensors that are not on the CPU: a future of such tensors is told of them.
std::vector<c10::Device> devices_of(at::TensorList tensors);

template <typename Stream>
constexpr bool kTellsHandle = requires(const Stream& stream) {
  stream.native_handle();
};
/// Whether this torch tells the driver's handles of its streams, without which they cannot wait for
/// calls in queues of devices: versions of before 2026 do not.
constexpr bool kStreamsCanWait = kTellsHandle<c10::Stream>;
/// The current stream of this thread; absent: the device is the CPU.
std::optional<c10::Stream> current_stream(c10::Device device);

/// The stream of a device that is current in this thread, in the library's form.
class CurrentStream {
 public:
  /// On the CPU it is null.
  CurrentStream(const char* name, c10::Device device);
  ~CurrentStream();
  CurrentStream(const CurrentStream&) = delete;
  CurrentStream& operator=(const CurrentStream&) = delete;
  anycclStream_t get() const { return stream_; }

 private:
  anycclStream_t stream_ = nullptr;
};

/// While it lives, what this thread does on the device goes into a stream of torch's pool, and so
/// does not come after what a program has put into its own. On the CPU there is nothing to do.
class PoolStream {
 public:
  explicit PoolStream(c10::Device device);
  /// Returns when the device has done what this thread has put there.
  void finish() const;

 private:
  std::optional<c10::StreamGuard> guard_;
};

}  // namespace anyccl::torch
