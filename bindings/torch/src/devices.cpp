#include "devices.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "errors.hpp"
#include "tensors.hpp"

namespace anyccl::torch {
namespace {

/// Returns the driver's handle of a stream. If torch does not tell it, this waits for the work of
/// the stream, to which the default stream, null, adds nothing.
template <typename Stream>
void* native_handle_of(const Stream& stream) {
  if constexpr (kTellsHandle<Stream>) {
    return stream.native_handle();
  } else {
    stream.synchronize();
    return nullptr;
  }
}

}  // namespace

c10::Device common_device(const char* name, at::TensorList inputs, at::TensorList outputs) {
  c10::Device device = c10::kCPU;
  bool is_first = true;
  for (const at::TensorList tensors : {inputs, outputs}) {
    for (const at::Tensor& tensor : tensors) {
      if (!is_first && tensor.device() != device)
        refuse(name, "the tensors are on " + device.str() + " and on " + tensor.device().str() +
                         "; those of one call are on one device");
      device = tensor.device();
      is_first = false;
    }
  }
  return device;
}

std::vector<c10::Device> devices_of(at::TensorList tensors) {
  std::vector<c10::Device> devices;
  for (const at::Tensor& tensor : tensors)
    if (!tensor.is_cpu()) devices.push_back(tensor.device());
  return devices;
}

std::optional<c10::Stream> current_stream(c10::Device device) {
  if (device.is_cpu()) return std::nullopt;
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

CurrentStream::CurrentStream(const char* name, c10::Device device) {
  const std::optional<c10::Stream> stream = current_stream(device);
  if (stream) check(anycclStreamWrap(&stream_, device.index(), native_handle_of(*stream)), name);
}

CurrentStream::~CurrentStream() {
  if (stream_ != nullptr) anycclStreamDestroy(stream_);
}

PoolStream::PoolStream(c10::Device device) {
  if (!device.is_cpu())
    guard_.emplace(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
}

void PoolStream::finish() const {
  if (guard_) guard_->current_stream().synchronize();
}

}  // namespace anyccl::torch
