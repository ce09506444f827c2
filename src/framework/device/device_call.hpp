#pragma once
// Calls whose buffers lie in memory of a device are the same calls on memory of the host, with
// copies around them.

#include <functional>
#include <memory>
#include <vector>

#include "framework/call/check_call.hpp"
#include "framework/device/device_copies.hpp"

namespace anyccl {

/// Errors: invalid_usage, if work of the program's queue is recorded instead of being done.
Status check_recording(Device& device, DeviceQueue program);

/// Whether a buffer of a call is memory of the device. Errors: invalid_argument, which names a
/// buffer, also if the other one is memory of the host that is not pinned.
Result<bool> is_for_queues(DeviceCopies& copies, const Call& call, const BufferShape& shape,
                           Rank me, int size);

/// One call, whose stream or buffers are a device's, on memory of the host: first begin(), then the
/// call, then end(). Or, without a wait here, take_place(), start_input(), the call, and
/// start_output(), each but the call until is_there(). So no queue but the program's holds up work
/// that others may wait for. After that it may begin again, with what the buffers hold then.
///
/// Threads: one at a time.
class DeviceCall {
 public:
  /// Whether the communicator can still be used: a wait for the device asks this.
  using Usable = std::function<Status()>;
  /// Bytes that go from or to a device.
  struct Piece {
    std::byte* on_device;
    std::byte* on_host;
    std::size_t bytes;
  };

  /// `call` is right but for its buffers; call() has its arrays. `shape`: as check_call() has it.
  /// `program`: the queue of the device that the call is in, which lives until the last
  /// take_place() has returned; null: the default one.
  /// Errors: invalid_argument, which names the buffer; invalid_usage, if the queue is recorded.
  static Result<std::shared_ptr<DeviceCall>> make(std::shared_ptr<DeviceCopies> copies,
                                                  const Call& call, const BufferShape& shape,
                                                  Rank me, int size, DeviceQueue program);
  ~DeviceCall();
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  /// Whether a buffer is copied.
  bool copies_anything() const { return block_ != nullptr; }
  /// The call on memory of the host, with the arrays of the other one.
  const Call& call() const { return call_; }
  /// Notes where the program's queue is; is_there() when that has come to here. Errors:
  /// invalid_usage, if the queue is recorded now.
  Status take_place();
  /// Starts the copies of the input, or of the result.
  Status start_input();
  Status start_output();
  /// Whether the work that was started last is done.
  Result<bool> is_there() const;
  /// Returns when the input is there, or the communicator cannot be used any more.
  Status begin(const Usable& usable);
  /// Returns when the copies of the result have ended, also of a communicator that fails meanwhile.
  Status end();

 private:
  DeviceCall(std::shared_ptr<DeviceCopies> copies, const Call& call, DeviceQueue program)
      : copies_(std::move(copies)), call_(call), program_(program) {}
  Status start_copies(const std::vector<Piece>& pieces, bool to_device);
  Status wait(const Usable& usable) const;

  const std::shared_ptr<DeviceCopies> copies_;
  Call call_;
  const DeviceQueue program_;
  DeviceMoment before_ = nullptr;         ///< In the program's queue, where the call is.
  DeviceMoment started_ = nullptr;        ///< The end of the work that was started last.
  PinnedMemory::Block* block_ = nullptr;  ///< The copies lie in it, if there are any.
  std::vector<Piece> in_, out_;
};

}  // namespace anyccl
