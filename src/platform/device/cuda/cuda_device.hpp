#pragma once
// A device behind the CUDA driver.

#include <memory>

#include "base/fork.hpp"
#include "platform/device/cuda/driver.hpp"
#include "platform/device/cuda/kernels.hpp"
#include "platform/device/device.hpp"

namespace anyccl::cuda {

/// Uses the primary context, which the runtime library of CUDA and PyTorch use, too.
class CudaDevice final : public Device {
 public:
  static Result<std::shared_ptr<Device>> open(const Driver& driver, int number);
  CudaDevice(const Driver& driver, int number) : driver_(driver), number_(number) {}
  /// In a forked child nothing is released: the context is the parent's.
  ~CudaDevice() override;

  Context context() const { return context_; }
  int number() const override { return number_; }
  const DeviceAbilities& abilities() const override { return abilities_; }
  Status enter() override;
  void leave() override;

  Result<MemoryFacts> facts(const void* memory) const override;
  Result<void*> allocate(std::size_t bytes) override;
  Status release(void* memory) override;
  Status pin(void* host, std::size_t bytes, bool read_only) override;
  Status unpin(void* host) override;
  Result<SharedHandle> share(const void* memory) override;
  Result<void*> open_shared(const SharedHandle& handle) override;
  Status close_shared(void* memory) override;

  Result<DeviceQueue> make_queue(bool urgent) override;
  Status drop_queue(DeviceQueue queue) override;
  Result<bool> is_recording(DeviceQueue queue) override;
  Status copy(DeviceQueue queue, void* to, const void* from, std::size_t bytes) override;
  Status reduce(DeviceQueue queue, Reduction what, void* dst, std::span<const void* const> sources,
                std::size_t count) override;
  Status exchange(DeviceQueue queue, const DeviceExchange& what) override;
  Status wait_word(DeviceQueue queue, std::uint32_t* word, std::uint32_t at_least) override;
  Status write_word(DeviceQueue queue, std::uint32_t* word, std::uint32_t value) override;
  Status call(DeviceQueue queue, void (*function)(void*), void* argument) override;

  Result<DeviceMoment> make_moment() override;
  Status drop_moment(DeviceMoment moment) override;
  Status record(DeviceQueue queue, DeviceMoment moment) override;
  Status wait(DeviceQueue queue, DeviceMoment moment) override;
  Result<bool> is_past(DeviceMoment moment) const override;

 private:
  Status start();
  int attribute(int what) const;

  const Driver& driver_;
  const int number_;
  Context context_ = nullptr;
  DeviceAbilities abilities_;
  Kernels kernels_;
  unsigned most_blocks_ = 1;
  const std::uint64_t generation_ = (watch_forks(), fork_generation());
};

}  // namespace anyccl::cuda
