#pragma once
// What a collective needs of a device: its memory, queues of work, and moments in them. A kind of
// device is one file behind this interface; docs/devices.md says what it must provide.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"

namespace anyccl {

enum class MemoryKind : std::uint8_t {
  host,     ///< The device does not know it: malloc's, and all that is not below.
  pinned,   ///< The host's, and known to the driver: queues may copy from and to it.
  device,   ///< A device's: the host must not touch it.
  managed,  ///< Moves between host and device by itself: both may touch it.
};

/// What the driver knows about an address.
struct MemoryFacts {
  MemoryKind kind = MemoryKind::host;
  int device = -1;           ///< The number of the device, of other memory than the host's.
  std::uintptr_t begin = 0;  ///< Where the allocation begins,
  std::size_t bytes = 0;     ///< and its size; 0 if the driver does not know it.
};

/// What differs between devices of one kind, and between drivers.
struct DeviceAbilities {
  bool writes_words = false;     ///< write_word() can be used.
  bool waits_for_words = false;  ///< wait_word() can be used.
  bool pins_read_only = false;   ///< pin() takes a mapping that cannot be written.
  bool shares_memory = false;    ///< share() and open_shared() can be used, if the system agrees.
  bool reduces = false;          ///< reduce() has kernels.
  int copy_engines = 1;          ///< Copies that can run at the same time.
  /// On one host, devices of other processes with this number are the same hardware; 0: not known.
  std::uint64_t hardware = 0;
};

using DeviceQueue = struct DeviceQueueTag*;    ///< CUstream, hipStream_t, an immediate list.
using DeviceMoment = struct DeviceMomentTag*;  ///< CUevent, hipEvent_t, ze_event_handle_t.

/// Which kernel reduces.
struct Reduction {
  DType dtype;
  ReduceOp op;
  std::uint32_t divisor = 1;  ///< What averages are divided by: at most 2^24.
};

/// Small data that devices of several ranks pass to each other, each by one kernel that waits for
/// those of the others. A rank publishes all of its input, takes one block of the input of each
/// rank, its own too, and puts them into `blocks`, one behind the other by rank. If there is a
/// result, it reduces them into that, as reduce() does.
struct DeviceExchange {
  /// The most that a rank publishes. A line has 4 bytes of it, but the first one none.
  static constexpr std::size_t kMostBytes = 8192, kLines = 1 + kMostBytes / 4;
  static constexpr std::size_t kMostRanks = 8;

  Reduction what{DType::u8, ReduceOp::sum};
  std::uint64_t* lines[kMostRanks] = {};  ///< Pinned, by rank. A rank writes its own ones alone.
  std::uint32_t ranks = 0, me = 0;
  std::uint32_t number = 0;  ///< All ranks have the same one, and its lines have not had it yet.
  std::uint32_t digest = 0;  ///< Ranks with another one wait for ever.
  bool fills_lines = false;  ///< It writes all of its lines: those without data get zeros.
  const std::uint32_t* stop = nullptr;  ///< Pinned: when it is not 0, no kernel waits.
  const void* input = nullptr;          ///< It may lie where `blocks` will have its own block.
  std::size_t bytes = 0;                ///< The size of the input.
  std::size_t offset = 0, block = 0;    ///< Bytes: where each input has the block, and its size.
  void* blocks = nullptr;
  void* result = nullptr;  ///< As long as a block; or null.
};

/// Another process opens memory by these bytes.
struct SharedHandle {
  char bytes[64];
};

/// One device of this process. Memory is given by the addresses that the program uses.
///
/// Threads: any, each with a DeviceScope while it uses the device. The work of one queue is done in
/// the order of the calls, in the background; release(), unpin() and close_shared() may wait for
/// all queues of the device, other functions for none, except that calls wait while a queue is
/// full. Errors: device_error, with the function of the driver and its reason. After some of them
/// (an illegal address, a lost device) everything fails.
class Device {
 public:
  virtual ~Device() = default;
  virtual int number() const = 0;
  virtual const DeviceAbilities& abilities() const = 0;

  /// Makes the device that of the calling thread, until leave(), which gives back what the thread
  /// had before. See DeviceScope.
  virtual Status enter() = 0;
  virtual void leave() = 0;

  /// Any address; of memory that was freed, what the driver says.
  virtual Result<MemoryFacts> facts(const void* memory) const = 0;
  virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual Status release(void* memory) = 0;
  /// Lets queues copy from and, unless `read_only`, to `host`, whole pages that stay mapped until
  /// unpin(). Memory that is pinned already is no error.
  virtual Status pin(void* host, std::size_t bytes, bool read_only) = 0;
  virtual Status unpin(void* host) = 0;
  /// The handle is that of the whole allocation in which `memory` lies.
  virtual Result<SharedHandle> share(const void* memory) = 0;
  /// Errors: besides, for a handle of this process.
  virtual Result<void*> open_shared(const SharedHandle& handle) = 0;
  virtual Status close_shared(void* memory) = 0;

  /// A queue that no other queue holds up, not even the device's default one. `urgent`: its work
  /// comes before that of others, and it shares no hardware queue with them.
  virtual Result<DeviceQueue> make_queue(bool urgent) = 0;
  /// Its work still gets done.
  virtual Status drop_queue(DeviceQueue queue) = 0;
  /// Whether work that is put into it would be recorded into a graph instead of being done, or
  /// refused, as in the default queue (null) while another one is recorded.
  virtual Result<bool> is_recording(DeviceQueue queue) = 0;
  /// Memory of devices, or pinned.
  virtual Status copy(DeviceQueue queue, void* to, const void* from, std::size_t bytes) = 0;
  /// dst[i] = sources[0][i] op sources[1][i] op ..., i < count: the same bits as of ReduceFn
  /// (platform/reduce/kernels.hpp). An average is a sum, divided as by DivideFn; both together are
  /// rounded once. Two to kMostSources vectors, of an average one, too, of the type's alignment, of
  /// devices or pinned; `dst` may be one of them, there is no other overlap. Errors: unsupported,
  /// if the device has no kernel for it.
  virtual Status reduce(DeviceQueue queue, Reduction what, void* dst,
                        std::span<const void* const> sources, std::size_t count) = 0;
  static constexpr std::size_t kMostSources = 8;
  /// The kernel runs as long as it waits, and may keep other work of its queue's priority waiting.
  /// Errors: as of reduce().
  virtual Status exchange(DeviceQueue queue, const DeviceExchange& what) = 0;
  /// The queue waits until `*word`, pinned, is `at_least`: cyclically, so that numbers may wrap.
  virtual Status wait_word(DeviceQueue queue, std::uint32_t* word, std::uint32_t at_least) = 0;
  /// The queue writes `*word`, pinned, after what it has written before.
  virtual Status write_word(DeviceQueue queue, std::uint32_t* word, std::uint32_t value) = 0;
  /// The queue waits while the host runs the function, which must not use the device. Those of all
  /// queues run one at a time.
  virtual Status call(DeviceQueue queue, void (*function)(void*), void* argument) = 0;

  virtual Result<DeviceMoment> make_moment() = 0;
  virtual Status drop_moment(DeviceMoment moment) = 0;
  /// The moment is now where the queue's work ends. Queues that wait for it already wait for the
  /// place that it had.
  virtual Status record(DeviceQueue queue, DeviceMoment moment) = 0;
  /// The queue waits for the place where the moment was last recorded, if it was.
  virtual Status wait(DeviceQueue queue, DeviceMoment moment) = 0;
  /// Whether all work before the place is done, or it was never recorded.
  virtual Result<bool> is_past(DeviceMoment moment) const = 0;
};

/// The device is that of this thread, as long as this lives.
class DeviceScope {
 public:
  static Result<DeviceScope> enter(Device& device) {
    if (Status entered = device.enter(); !entered.ok()) return entered;
    return DeviceScope(device);
  }
  DeviceScope(DeviceScope&& other) noexcept : device_(std::exchange(other.device_, nullptr)) {}
  DeviceScope& operator=(DeviceScope&&) = delete;
  ~DeviceScope() {
    if (device_ != nullptr) device_->leave();
  }

 private:
  explicit DeviceScope(Device& device) : device_(&device) {}
  Device* device_;
};

}  // namespace anyccl
