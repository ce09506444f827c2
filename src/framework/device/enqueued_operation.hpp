#pragma once
// A call that is in queues of a device is an operation, too: it ends when the queues are through
// with it.

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/device/device_operation.hpp"
#include "framework/device/wires.hpp"

namespace anyccl {

class DeviceQueues;

/// What the caller has of a call in queues. On the host the ranks only meet in it; after a failure
/// it ends the waits of the queues, and is over when they are through.
///
/// The time limit of the call, or else of the communicator, counts for the meeting, and anew from
/// the moment on when all ranks have met and the queue has come to it.
///
/// Threads: one at a time goes on with it; any may ask done() or hold it.
class EnqueuedOperation : public DeviceWork {
 public:
  explicit EnqueuedOperation(std::shared_ptr<DeviceQueues> queues);
  ~EnqueuedOperation() override;
  EnqueuedOperation(const EnqueuedOperation&) = delete;
  EnqueuedOperation& operator=(const EnqueuedOperation&) = delete;

  /// Before it is issued: its moments. `begin`: a word that says when the queue has come to it;
  /// without one, turn() does. Errors: device_error.
  Status make_moments(const std::optional<WordOfRank>& begin);
  void set_meeting(std::shared_ptr<Operation> meeting) { meeting_ = std::move(meeting); }
  /// The places in the queues where earlier work is done, and where the call is. The first one may
  /// be null.
  DeviceMoment turn() const { return turn_; }
  DeviceMoment end() const { return end_; }
  /// All of it is in the queues, or as much as there ever will be. They wait for `waits`.
  void set_enqueued(std::vector<WordOfRank> waits) {
    waits_ = std::move(waits);
    is_enqueued_.store(true, std::memory_order_release);
  }

  const Comm& comm() const override;
  bool is_queued() const override { return true; }
  std::string what() const override { return "a call in queues of its device"; }
  bool advance() override;
  void awaited(std::vector<Rank>& ranks) const override;
  Operation& on_host() override { return *meeting_; }
  const Operation& on_host() const { return *meeting_; }
  bool keeps_limit(std::chrono::milliseconds time) override;
  const Device& device() const;
  /// Later work of a queue of its device waits until it is complete.
  virtual Status hold(DeviceQueue queue);

 protected:
  DeviceQueues& queues() const { return *queues_; }
  bool is_enqueued() const { return is_enqueued_.load(std::memory_order_acquire); }
  /// Before it is enqueued. Puts more of it into the queues, if it can; whether it has.
  virtual bool put_more() { return false; }
  /// Whether turn() is where the call is in its queue.
  virtual bool has_place() const { return is_enqueued(); }

 private:
  void look();
  Result<bool> has_turn() const;

  const std::shared_ptr<DeviceQueues> queues_;
  std::shared_ptr<Operation> meeting_;
  DeviceMoment turn_ = nullptr, end_ = nullptr;
  std::optional<WordOfRank> begin_;
  std::atomic<bool> is_enqueued_{false};
  std::vector<WordOfRank> waits_;  // once it is
  bool limit_counts_ = false;
  std::chrono::steady_clock::time_point looked_;  // for failures of peers
};

}  // namespace anyccl
