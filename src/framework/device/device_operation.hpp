#pragma once
// An issued call on memory of a device is an operation of its own: the call on memory of the host,
// with the copies before and after it.

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "base/deadline.hpp"
#include "framework/communicator/communicator.hpp"
#include "framework/device/device_call.hpp"

namespace anyccl {

/// Fails the communicator with an error of its rank's device; returns the error, which names the
/// rank.
Status fail_by_device(Comm& comm, const Status& status);

/// An operation that goes on in a device: the thread of IssuedDeviceCalls looks after it.
class DeviceWork : public Operation {
 public:
  virtual const Comm& comm() const = 0;
  /// Whether its data goes through queues of devices, and nothing of it is open on the host.
  virtual bool is_queued() const { return false; }
};

/// What the caller has in place of the operation on memory of the host, whose gate is closed until
/// the input is there; it is done when the result is on the device. Several calls that travel as
/// one share it.
///
/// The time limit of the calls counts from here, until their turn in streams, and then anew for the
/// call on the host. That of the communicator counts for the latter alone.
///
/// Threads: one at a time goes on with it; any may ask done(), or limit it.
class DeviceOperation final : public DeviceWork {
 public:
  /// All calls have their places, and `on_host` has no limit of its own. `limit`: that of the
  /// calls; 0: none.
  DeviceOperation(std::shared_ptr<Comm> comm, std::shared_ptr<Operation> on_host,
                  std::vector<std::shared_ptr<DeviceCall>> calls, std::chrono::milliseconds limit);
  const Comm& comm() const override { return *comm_; }

  /// Starts copies, opens the gate or completes, and wakes waiting threads, as far as it can
  /// without waiting. An error of the device fails the communicator.
  bool advance() override;
  void awaited(std::vector<Rank>& ranks) const override { on_host_->awaited(ranks); }
  Operation& on_host() override { return *on_host_; }
  bool keeps_limit(std::chrono::milliseconds time) override;

 private:
  enum class Stage : std::uint8_t { turn, input, call, output };
  Result<bool> await_turn();
  void open_gate();
  /// Whether it has come to its next stage. Errors: what ends it.
  Result<bool> go_on();
  void end(Status status);

  const std::shared_ptr<Comm> comm_;
  const std::shared_ptr<Operation> on_host_;
  std::vector<std::shared_ptr<DeviceCall>> calls_;
  Stage stage_ = Stage::turn;
  std::mutex mutex_;  // of the limit
  std::chrono::milliseconds limit_;
  Deadline deadline_;       // of its turn
  bool is_opened_ = false;  // the operation on the host has the limit
};

}  // namespace anyccl
