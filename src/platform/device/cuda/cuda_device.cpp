#include "platform/device/cuda/cuda_device.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/types.hpp"
#include "platform/device/cuda/kernels/reduce_args.hpp"

namespace anyccl::cuda {
namespace {

constexpr int kUrgent = -1000;  // the driver takes the most urgent priority that it has

Stream stream_of(DeviceQueue queue) {
  return reinterpret_cast<Stream>(queue);
}
Event event_of(DeviceMoment moment) {
  return reinterpret_cast<Event>(moment);
}
Address address_of(const void* memory) {
  return reinterpret_cast<Address>(memory);
}

}  // namespace

Result<std::shared_ptr<Device>> CudaDevice::open(const Driver& driver, int number) {
  int devices = 0;
  ANYCCL_CHECK(driver.check(driver.cuDeviceGetCount(&devices), "cuDeviceGetCount"));
  if (number < 0 || number >= devices)
    return error(Code::unsupported, "there is no device {}: the CUDA driver has {}", number,
                 devices);
  const auto device = std::make_shared<CudaDevice>(driver, number);
  ANYCCL_CHECK(device->start());
  return std::shared_ptr<Device>(device);
}

Status CudaDevice::start() {
  ANYCCL_CHECK(driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, number_),
                             "cuDevicePrimaryCtxRetain"));
  abilities_.writes_words = abilities_.waits_for_words = attribute(kStreamWords) != 0;
  abilities_.pins_read_only = attribute(kReadOnlyRegister) != 0;
  abilities_.shares_memory = attribute(kUnifiedAddressing) != 0;
  abilities_.reduces = kKernelImages[0][0] != nullptr;
  abilities_.copy_engines = attribute(kCopyEngines);
  abilities_.hardware = 1 + (static_cast<std::uint64_t>(attribute(kPciDomain)) << 32) +
                        (static_cast<std::uint64_t>(attribute(kPciBus)) << 16) +
                        static_cast<std::uint64_t>(attribute(kPciDevice));
  constexpr unsigned kBlocksEach = 4;  // hide each other's waits for memory
  most_blocks_ = std::max(1U, static_cast<unsigned>(attribute(kMultiprocessors)) * kBlocksEach);
  return {};
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr || generation_ != fork_generation()) return;
  if (enter().ok()) {
    kernels_.unload(driver_);
    leave();
  }
  driver_.cuDevicePrimaryCtxRelease_v2(number_);
}

/// 0 if the driver does not know it.
int CudaDevice::attribute(int what) const {
  int value = 0;
  return driver_.cuDeviceGetAttribute(&value, what, number_) == kSuccess ? value : 0;
}

Status CudaDevice::enter() {
  return driver_.check(driver_.cuCtxPushCurrent_v2(context_), "cuCtxPushCurrent");
}

void CudaDevice::leave() {
  Context ours = nullptr;
  driver_.cuCtxPopCurrent_v2(&ours);
}

Result<MemoryFacts> CudaDevice::facts(const void* memory) const {
  unsigned type = 0, managed = 0;
  int device = -1;
  Address begin = 0;
  std::size_t bytes = 0;
  int what[] = {kMemoryType, kIsManaged, kDeviceOrdinal, kRangeStart, kRangeSize};
  void* values[] = {&type, &managed, &device, &begin, &bytes};
  const Error code =
      driver_.cuPointerGetAttributes(std::size(what), what, values, address_of(memory));
  // The driver gives zeros for memory that it does not know, or finds no value.
  if (code == kInvalidValue) return MemoryFacts{};
  ANYCCL_CHECK(driver_.check(code, "cuPointerGetAttributes"));
  if (type == 0) return MemoryFacts{};
  MemoryFacts facts{MemoryKind::pinned, device, static_cast<std::uintptr_t>(begin), bytes};
  if (managed != 0)
    facts.kind = MemoryKind::managed;
  else if (type == kTypeDevice)
    facts.kind = MemoryKind::device;
  return facts;
}

Result<void*> CudaDevice::allocate(std::size_t bytes) {
  Address at = 0;
  ANYCCL_CHECK(driver_.check(driver_.cuMemAlloc_v2(&at, bytes), "cuMemAlloc"));
  return reinterpret_cast<void*>(at);
}

Status CudaDevice::release(void* memory) {
  return driver_.check(driver_.cuMemFree_v2(address_of(memory)), "cuMemFree");
}

Status CudaDevice::pin(void* host, std::size_t bytes, bool read_only) {
  const unsigned flags =
      kRegisterPortable | kRegisterDeviceMap | (read_only ? kRegisterReadOnly : 0U);
  const Error code = driver_.cuMemHostRegister_v2(host, bytes, flags);
  return code == kAlreadyRegistered ? Status{} : driver_.check(code, "cuMemHostRegister");
}

Status CudaDevice::unpin(void* host) {
  return driver_.check(driver_.cuMemHostUnregister(host), "cuMemHostUnregister");
}

Result<SharedHandle> CudaDevice::share(const void* memory) {
  IpcHandle made;
  ANYCCL_CHECK(
      driver_.check(driver_.cuIpcGetMemHandle(&made, address_of(memory)), "cuIpcGetMemHandle"));
  SharedHandle handle;
  std::memcpy(&handle, &made, sizeof handle);
  return handle;
}

Result<void*> CudaDevice::open_shared(const SharedHandle& handle) {
  IpcHandle given;
  std::memcpy(&given, &handle, sizeof given);
  Address at = 0;
  ANYCCL_CHECK(driver_.check(driver_.cuIpcOpenMemHandle_v2(&at, given, kIpcLazyPeerAccess),
                             "cuIpcOpenMemHandle"));
  return reinterpret_cast<void*>(at);
}

Status CudaDevice::close_shared(void* memory) {
  return driver_.check(driver_.cuIpcCloseMemHandle(address_of(memory)), "cuIpcCloseMemHandle");
}

Result<DeviceQueue> CudaDevice::make_queue(bool urgent) {
  Stream stream = nullptr;
  ANYCCL_CHECK(driver_.check(
      driver_.cuStreamCreateWithPriority(&stream, kStreamNonBlocking, urgent ? kUrgent : 0),
      "cuStreamCreateWithPriority"));
  return reinterpret_cast<DeviceQueue>(stream);
}

Status CudaDevice::drop_queue(DeviceQueue queue) {
  return driver_.check(driver_.cuStreamDestroy_v2(stream_of(queue)), "cuStreamDestroy");
}

Result<bool> CudaDevice::is_recording(DeviceQueue queue) {
  int status = 0;
  const Error code = driver_.cuStreamIsCapturing(stream_of(queue), &status);
  if (code == kCaptureImplicit) return true;  // asked of the default queue beside one that is
  ANYCCL_CHECK(driver_.check(code, "cuStreamIsCapturing"));
  return status != 0;
}

Status CudaDevice::copy(DeviceQueue queue, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return {};
  return driver_.check(
      driver_.cuMemcpyAsync(address_of(to), address_of(from), bytes, stream_of(queue)),
      "cuMemcpyAsync");
}

Status CudaDevice::reduce(DeviceQueue queue, Reduction what, void* dst,
                          std::span<const void* const> sources, std::size_t count) {
  const std::size_t least = what.op == ReduceOp::avg ? 1 : 2;
  if (sources.size() < least || sources.size() > kMostSources)
    return error(Code::internal, "a kernel reduces {} to {} vectors, not {}", least, kMostSources,
                 sources.size());
  ANYCCL_TRY(const Function function, kernels_.find(driver_, what));
  if (count == 0) return {};
  static_assert(kernels::ReduceArgs::kMostSources == kMostSources);
  kernels::ReduceArgs args{dst, {}, static_cast<unsigned>(sources.size()), what.divisor, count};
  std::copy(sources.begin(), sources.end(), args.src);
  constexpr unsigned kThreads = 256;
  const auto blocks =
      static_cast<unsigned>(std::min<std::size_t>(most_blocks_, (count + kThreads - 1) / kThreads));
  void* parameters[] = {&args};
  return driver_.check(driver_.cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0,
                                              stream_of(queue), parameters, nullptr),
                       "cuLaunchKernel");
}

Status CudaDevice::exchange(DeviceQueue queue, const DeviceExchange& what) {
  ANYCCL_TRY(const Function function, kernels_.find_exchange(driver_, what.what.dtype));
  kernels::ExchangeArgs args{};
  static_assert(kernels::ReduceArgs::kMostSources == DeviceExchange::kMostRanks);
  for (std::size_t r = 0; r < what.ranks; ++r)
    args.lines[r] = reinterpret_cast<unsigned long long*>(what.lines[r]);
  args.stop = what.stop;
  args.input = what.input;
  args.to = what.blocks;
  args.dst = what.result;
  args.bytes = static_cast<unsigned>(what.bytes);
  args.words =
      static_cast<unsigned>(what.fills_lines ? DeviceExchange::kLines - 1 : (what.bytes + 3) / 4);
  args.offset = static_cast<unsigned>(what.offset);
  args.block = static_cast<unsigned>(what.block);
  args.number = what.number;
  args.digest = what.digest;
  args.me = what.me;
  args.sources = what.ranks;
  args.divisor = what.what.divisor;
  args.count =
      what.result == nullptr ? 0 : static_cast<unsigned>(what.block / bytes_of(what.what.dtype));
  static_assert(static_cast<int>(kernels::Op::bxor) == static_cast<int>(ReduceOp::bxor));
  args.op = static_cast<kernels::Op>(what.what.op);
  constexpr unsigned kThreads = kernels::ExchangeArgs::kThreads;
  void* parameters[] = {&args};
  return driver_.check(driver_.cuLaunchKernel(function, 1, 1, 1, kThreads, 1, 1, 0,
                                              stream_of(queue), parameters, nullptr),
                       "cuLaunchKernel");
}

Status CudaDevice::wait_word(DeviceQueue queue, std::uint32_t* word, std::uint32_t at_least) {
  return driver_.check(
      driver_.cuStreamWaitValue32_v2(stream_of(queue), address_of(word), at_least, kWaitGeq),
      "cuStreamWaitValue32");
}

Status CudaDevice::write_word(DeviceQueue queue, std::uint32_t* word, std::uint32_t value) {
  return driver_.check(
      driver_.cuStreamWriteValue32_v2(stream_of(queue), address_of(word), value, 0),
      "cuStreamWriteValue32");
}

Status CudaDevice::call(DeviceQueue queue, void (*function)(void*), void* argument) {
  return driver_.check(driver_.cuLaunchHostFunc(stream_of(queue), function, argument),
                       "cuLaunchHostFunc");
}

Result<DeviceMoment> CudaDevice::make_moment() {
  Event event = nullptr;
  ANYCCL_CHECK(driver_.check(driver_.cuEventCreate(&event, kEventDisableTiming), "cuEventCreate"));
  return reinterpret_cast<DeviceMoment>(event);
}

Status CudaDevice::drop_moment(DeviceMoment moment) {
  return driver_.check(driver_.cuEventDestroy_v2(event_of(moment)), "cuEventDestroy");
}

Status CudaDevice::record(DeviceQueue queue, DeviceMoment moment) {
  return driver_.check(driver_.cuEventRecord(event_of(moment), stream_of(queue)), "cuEventRecord");
}

Status CudaDevice::wait(DeviceQueue queue, DeviceMoment moment) {
  return driver_.check(driver_.cuStreamWaitEvent(stream_of(queue), event_of(moment), 0),
                       "cuStreamWaitEvent");
}

Result<bool> CudaDevice::is_past(DeviceMoment moment) const {
  const Error code = driver_.cuEventQuery(event_of(moment));
  if (code == kNotReady) return false;
  ANYCCL_CHECK(driver_.check(code, "cuEventQuery"));
  return true;
}

}  // namespace anyccl::cuda
