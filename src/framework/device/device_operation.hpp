#pragma once
// An issued call on memory of a device is an operation of its own: the call on memory of the host,
// with the copies before and after it.

#include <chrono>
#include <memory>
#include <vector>

#include "base/deadline.hpp"
#include "framework/communicator/communicator.hpp"
#include "framework/device/device_call.hpp"

namespace anyccl {

/// What the caller has in place of the operation on memory of the host, whose gate is closed until
/// the input is there; it is done when the result is on the device. Several calls that travel as
/// one share it.
///
/// Threads: one at a time goes on with it; any may ask done().
class DeviceOperation final : public Operation {
 public:
  /// All calls have their places. `limit`: the time until their turn in streams; 0: any.
  DeviceOperation(std::shared_ptr<Comm> comm, std::shared_ptr<Operation> on_host,
                  std::vector<std::shared_ptr<DeviceCall>> calls, std::chrono::milliseconds limit);
  const Comm& comm() const { return *comm_; }

  /// Starts copies, opens the gate or completes, and wakes who waits, as far as it can without
  /// waiting. An error of the device fails the communicator.
  bool advance() override;
  void awaited(std::vector<Rank>& ranks) const override { on_host_->awaited(ranks); }
  Operation& on_host() override { return *on_host_; }

 private:
  enum class Stage : std::uint8_t { turn, input, call, output };
  /// Whether it has come to its next stage. Errors: what ends it.
  Result<bool> go_on();
  void end(Status status);

  const std::shared_ptr<Comm> comm_;
  const std::shared_ptr<Operation> on_host_;
  std::vector<std::shared_ptr<DeviceCall>> calls_;
  const std::chrono::milliseconds limit_;
  const Deadline deadline_;  // of its turn
  Stage stage_ = Stage::turn;
};

}  // namespace anyccl
