#include "runtime.hpp"

#include <c10/util/Exception.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "driver.hpp"

namespace anyccl::simulated_device {
namespace {

constexpr std::size_t kMostDevices = 8;
constexpr c10::StreamId kPool = 8;

/// The streams of a device, by their ids.
struct Streams {
  std::mutex mutex;
  std::vector<cuda::Stream> all = {nullptr};
  c10::StreamId next = 0;  // of the pool
};

Streams& streams(c10::DeviceIndex device) {
  static auto& all = *new std::array<Streams, kMostDevices>;
  return all[static_cast<std::size_t>(device)];
}

cuda::Context context_of(c10::DeviceIndex device) {
  static std::array<std::once_flag, kMostDevices> once;
  static std::array<cuda::Context, kMostDevices> contexts{};
  TORCH_CHECK(device >= 0 && device < device_count(), "there is no simulated device ",
              static_cast<int>(device));
  const auto index = static_cast<std::size_t>(device);
  std::call_once(once[index], [&] {
    SIMULATED_CALL(cuDevicePrimaryCtxRetain, &contexts[index], static_cast<int>(device));
  });
  return contexts[index];
}

struct ThisThread {
  c10::DeviceIndex device = 0;
  std::array<c10::StreamId, kMostDevices> streams{};
};
ThisThread& this_thread() {
  thread_local ThisThread state;
  return state;
}

/// With the lock.
c10::StreamId add_stream(Streams& mine) {
  cuda::Stream stream = nullptr;
  SIMULATED_CALL(cuStreamCreateWithPriority, &stream, cuda::kStreamNonBlocking, 0);
  mine.all.push_back(stream);
  return static_cast<c10::StreamId>(mine.all.size() - 1);
}

}  // namespace

/// A block of pinned memory, and where a stream has last used it.
struct Staging {
  std::byte* at = nullptr;
  std::size_t bytes = 0;
  cuda::Event last_use = nullptr;
  bool is_taken = false;
};

namespace {

struct AllStaging {
  std::mutex mutex;
  std::deque<Staging> blocks;
};
AllStaging& all_staging() {
  static auto& all = *new AllStaging;
  return all;
}

/// In a context.
Staging& take_staging(std::size_t bytes) {
  AllStaging& all = all_staging();
  const std::lock_guard lock(all.mutex);
  for (Staging& block : all.blocks) {
    if (block.is_taken || block.bytes < bytes || cuEventQuery(block.last_use) != cuda::kSuccess)
      continue;
    block.is_taken = true;
    return block;
  }
  Staging& made = all.blocks.emplace_back();
  made.bytes = (bytes + 4095) / 4096 * 4096;
  made.is_taken = true;
  void* at = nullptr;
  SIMULATED_CALL(cuMemHostAlloc, &at, made.bytes, 0);
  made.at = static_cast<std::byte*>(at);
  SIMULATED_CALL(cuEventCreate, &made.last_use, cuda::kEventDisableTiming);
  return made;
}

void give_back(Staging& block) {
  const std::lock_guard lock(all_staging().mutex);
  block.is_taken = false;
}

cuda::Address address(const void* at) {
  return reinterpret_cast<cuda::Address>(at);
}

}  // namespace

void check(cuda::Error error, const char* function) {
  if (error == cuda::kSuccess) return;
  const char* text = nullptr;
  cuGetErrorString(error, &text);
  TORCH_CHECK(false, "simulated device: ", function, ": ", text == nullptr ? "" : text);
}

c10::DeviceIndex device_count() noexcept {
  static const c10::DeviceIndex count = [] {
    int found = 0;
    const bool is_there = cuInit(0) == cuda::kSuccess && cuDeviceGetCount(&found) == cuda::kSuccess;
    return static_cast<c10::DeviceIndex>(is_there ? found : 0);
  }();
  return count;
}

c10::DeviceIndex current_device() {
  return this_thread().device;
}

void set_device(c10::DeviceIndex device) {
  SIMULATED_CALL(cuCtxSetCurrent, context_of(device));
  this_thread().device = device;
}

InContext::InContext(c10::DeviceIndex device) {
  SIMULATED_CALL(cuCtxPushCurrent_v2, context_of(device));
}

InContext::~InContext() {
  cuda::Context ours = nullptr;
  cuCtxPopCurrent_v2(&ours);
}

c10::Stream stream_of(c10::DeviceIndex device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kPrivateUse1, device), id);
}

c10::Stream current_stream(c10::DeviceIndex device) {
  return stream_of(device, this_thread().streams[static_cast<std::size_t>(device)]);
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::Stream before = current_stream(stream.device_index());
  this_thread().streams[static_cast<std::size_t>(stream.device_index())] = stream.id();
  return before;
}

c10::Stream stream_from_pool(c10::DeviceIndex device) {
  const InContext context(device);
  Streams& mine = streams(device);
  const std::lock_guard lock(mine.mutex);
  while (mine.all.size() <= kPool) add_stream(mine);
  mine.next = mine.next % kPool + 1;
  return stream_of(device, mine.next);
}

c10::Stream new_stream(c10::DeviceIndex device) {
  static_cast<void>(stream_from_pool(device));  // whose ids come first
  const InContext context(device);
  Streams& mine = streams(device);
  const std::lock_guard lock(mine.mutex);
  return stream_of(device, add_stream(mine));
}

cuda::Stream native(c10::Stream stream) {
  Streams& mine = streams(stream.device_index());
  const std::lock_guard lock(mine.mutex);
  return mine.all.at(static_cast<std::size_t>(stream.id()));
}

void synchronize(c10::Stream stream) {
  const InContext context(stream.device_index());
  SIMULATED_CALL(cuStreamSynchronize, native(stream));
}

void download(c10::DeviceIndex device, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const InContext context(device);
  const cuda::Stream stream = native(current_stream(device));
  Staging& block = take_staging(bytes);
  SIMULATED_CALL(cuMemcpyAsync, address(block.at), address(from), bytes, stream);
  SIMULATED_CALL(cuStreamSynchronize, stream);
  std::memcpy(to, block.at, bytes);
  give_back(block);
}

Upload::Upload(c10::DeviceIndex device, const void* from, std::size_t bytes)
    : context_(device), stream_(current_stream(device)), staging_(take_staging(bytes)) {
  std::memcpy(staging_.at, from, bytes);
}

void Upload::copy(void* to, std::size_t offset, std::size_t bytes) const {
  SIMULATED_CALL(cuMemcpyAsync, address(to), address(staging_.at + offset), bytes, native(stream_));
}

Upload::~Upload() {
  cuEventRecord(staging_.last_use, native(stream_));
  give_back(staging_);
}

}  // namespace anyccl::simulated_device
