// Devices, streams and events of "simulated", as torch asks for them.

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "allocator.hpp"
#include "driver.hpp"
#include "runtime.hpp"

namespace anyccl::simulated_device {
namespace {

cuda::Event event_of(void* event) {
  return static_cast<cuda::Event>(event);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Device on(c10::DeviceIndex device) { return {c10::kPrivateUse1, device}; }

  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return on(current_device()); }
  void setDevice(c10::Device device) const override { set_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    set_device(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

  c10::Stream getStream(c10::Device device) const override {
    return current_stream(device.index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream_of(device.index(), 0);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return stream_from_pool(device.index());
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return new_stream(device.has_index() ? device.index() : current_device());
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return native(stream); }
  bool queryStream(const c10::Stream& stream) const override {
    const InContext context(stream.device_index());
    return cuStreamQuery(native(stream)) == cuda::kSuccess;
  }
  void synchronizeStream(const c10::Stream& stream) const override { synchronize(stream); }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    const InContext context(device);
    SIMULATED_CALL(cuCtxSynchronize);
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device,
              const c10::EventFlag flag) const override {
    const InContext context(device == -1 ? stream.device_index() : device);
    cuda::Event made = event_of(*event);
    if (made == nullptr)
      SIMULATED_CALL(cuEventCreate, &made,
                     flag == c10::EventFlag::PYTORCH_DEFAULT ? cuda::kEventDisableTiming : 0U);
    *event = made;
    SIMULATED_CALL(cuEventRecord, made, native(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    const InContext context(stream.device_index());
    SIMULATED_CALL(cuStreamWaitEvent, native(stream), event_of(event), 0);
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || cuEventQuery(event_of(event)) == cuda::kSuccess;
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) SIMULATED_CALL(cuEventSynchronize, event_of(event));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event != nullptr) cuEventDestroy_v2(event_of(event));
  }
  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    record_stream(memory, stream);
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_device(device); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex before = current_device();
    set_device(device);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 || device >= device_count() ? current_device() : exchangeDevice(device);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    resize(storage, bytes);
  }
};

const bool is_registered = [] {
  c10::impl::registerDeviceGuard(c10::kPrivateUse1, new Guard);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  c10::SetAllocator(c10::kPrivateUse1, &allocator());
  return true;
}();

}  // namespace
}  // namespace anyccl::simulated_device
