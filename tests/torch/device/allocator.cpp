#include "allocator.hpp"

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "driver.hpp"
#include "runtime.hpp"

namespace anyccl::simulated_device {
namespace {

/// Tensors of one device, one stream and about one size use the blocks of a shelf.
struct Shelf {
  c10::DeviceIndex device;
  c10::StreamId stream;
  std::size_t bytes;
  bool operator<(const Shelf& other) const {
    return std::tie(device, stream, bytes) < std::tie(other.device, other.stream, other.bytes);
  }
};

struct Block {
  Shelf shelf;
  std::vector<c10::StreamId> other_streams;
  std::vector<cuda::Event> in_use;  // of a freed block, until other streams have passed them
};

class Blocks {
 public:
  void* take(const Shelf& shelf) {
    const InContext context(shelf.device);
    const std::lock_guard lock(mutex_);
    for (void*& at : free_[shelf]) {
      if (is_used(all_[at])) continue;
      void* const found = at;
      at = free_[shelf].back();
      free_[shelf].pop_back();
      return found;
    }
    cuda::Address made = 0;
    SIMULATED_CALL(cuMemAlloc_v2, &made, shelf.bytes);
    void* const at = reinterpret_cast<void*>(made);
    all_[at] = {shelf, {}, {}};
    return at;
  }

  void give_back(void* at) {
    const std::lock_guard lock(mutex_);
    Block& block = all_[at];
    const InContext context(block.shelf.device);
    for (const c10::StreamId id : block.other_streams) {
      cuda::Event event = nullptr;
      SIMULATED_CALL(cuEventCreate, &event, cuda::kEventDisableTiming);
      SIMULATED_CALL(cuEventRecord, event, native(stream_of(block.shelf.device, id)));
      block.in_use.push_back(event);
    }
    block.other_streams.clear();
    free_[block.shelf].push_back(at);
  }

  void record(void* at, c10::Stream stream) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(at);
    if (found != all_.end() && found->second.shelf.stream != stream.id())
      found->second.other_streams.push_back(stream.id());
  }

 private:
  static bool is_used(Block& block) {
    std::erase_if(block.in_use, [](cuda::Event event) {
      return cuEventQuery(event) == cuda::kSuccess && cuEventDestroy_v2(event) == cuda::kSuccess;
    });
    return !block.in_use.empty();
  }

  std::mutex mutex_;
  std::map<void*, Block> all_;
  std::map<Shelf, std::vector<void*>> free_;
};

Blocks& blocks() {
  static auto& all = *new Blocks;
  return all;
}

void give_back(void* at) {
  blocks().give_back(at);
}

void copy_here(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const c10::DeviceIndex device = current_device();
  const InContext context(device);
  SIMULATED_CALL(cuMemcpyAsync, reinterpret_cast<cuda::Address>(to),
                 reinterpret_cast<cuda::Address>(from), bytes, native(current_stream(device)));
}

class SimulatedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device(c10::kPrivateUse1, current_device());
    if (bytes == 0) return {nullptr, device};
    constexpr std::size_t kUnit = 512;
    const c10::StreamId stream = current_stream(device.index()).id();
    void* const at = blocks().take({device.index(), stream, (bytes + kUnit - 1) / kUnit * kUnit});
    return {at, at, &simulated_device::give_back, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &simulated_device::give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    copy_here(to, from, bytes);
  }
};

}  // namespace

c10::Allocator& allocator() {
  static auto& one = *new SimulatedAllocator;
  return one;
}

void record_stream(const c10::DataPtr& memory, c10::Stream stream) {
  blocks().record(memory.get(), stream);
}

void resize(const c10::Storage& storage, std::size_t bytes) {
  const c10::DeviceGuard guard(storage.device());
  c10::DataPtr made = allocator().allocate(bytes);
  copy_here(made.get(), storage.data(), std::min(bytes, storage.nbytes()));
  storage.set_data_ptr_noswap(std::move(made));
  storage.unsafeGetStorageImpl()->set_nbytes(bytes);
}

}  // namespace anyccl::simulated_device
