#pragma once
// A communicator whose ranks have agreed on it has queues of its devices, in which its calls run.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/call/around_call.hpp"
#include "framework/collective/plan_cache.hpp"
#include "framework/device/channel.hpp"
#include "framework/device/device_copies.hpp"
#include "framework/device/enqueued_operation.hpp"
#include "framework/device/enqueuer.hpp"
#include "framework/device/exchanges.hpp"
#include "framework/device/last_calls.hpp"
#include "framework/device/moments.hpp"
#include "framework/device/queue_room.hpp"
#include "framework/device/queued_message.hpp"

namespace anyccl {

/// The work that waits for the end of a call in queues.
enum class Follower : std::uint8_t {
  none,
  program,    ///< The queue of the program.
  next_call,  ///< The first thing that the next call of the communicator reads.
};

/// The queues of one rank of a communicator, its wires to the peers, and the plans of calls there.
///
/// Threads: any. Calls are in the queues in the order in which they have got their places among the
/// collectives.
class DeviceQueues : public std::enable_shared_from_this<DeviceQueues> {
 public:
  /// Collective. `copies`: of this rank's device; null: it has none. `limit`: as of Meetings.
  /// Errors: on all ranks those of any.
  static Result<std::shared_ptr<DeviceQueues>> make(const std::shared_ptr<Comm>& comm,
                                                    const std::shared_ptr<DeviceCopies>& copies,
                                                    std::chrono::milliseconds limit = {});
  DeviceQueues(const std::shared_ptr<Comm>& comm, const std::shared_ptr<DeviceCopies>& copies);
  ~DeviceQueues();
  DeviceQueues(const DeviceQueues&) = delete;
  DeviceQueues& operator=(const DeviceQueues&) = delete;

  /// Whether such a call is done in queues, on all ranks. Errors: of its arguments.
  Result<bool> takes(const Call& call);
  /// Puts the call, whose buffers are the device's or pinned, into the queues, after what `program`
  /// has by now, and before what the follower does later. Waits while queues are full. Errors: of
  /// its arguments, invalid_usage, if `program` is recorded, and in_progress, if another thread is
  /// in a CallSequence at `until`, before anything is done; else the communicator fails.
  Result<std::shared_ptr<EnqueuedOperation>> put(const Call& call, DeviceQueue program,
                                                 Follower follower, const Deadline& until = {});

  /// A message that takes() is for, which comes after what `program` has when it is put there.
  std::shared_ptr<QueuedMessage> message(const Call& call, DeviceQueue program);
  /// The message when it was put there. Errors: as of put().
  Result<std::shared_ptr<EnqueuedOperation>> result_of(std::shared_ptr<QueuedMessage> message);

  Comm& comm() const { return *comm_; }
  Device& device() const { return copies_->device(); }
  Wires& wires() const { return *wires_; }
  /// For its calls.
  Moments& moments() { return moments_; }
  bool is_inherited() const { return copies_->is_inherited(); }
  std::string name_of(Rank rank) const { return comm_->membership().names[uindex(rank)]; }

 private:
  /// When all ranks have met in a call, its queue may read what peers publish.
  class Agreement final : public AroundCall {
   public:
    explicit Agreement(DeviceQueues& queues) : queues_(queues) {}
    void before() override {}
    Status after() override {
      queues_.wires().agree(++met_);
      return {};
    }

   private:
    DeviceQueues& queues_;
    std::uint32_t met_ = 0;
  };
  Status problem() const;
  Status make_queues();
  void make_channels();
  bool takes_message(const Call& call) const;
  /// Returns null if it is not done in queues.
  Result<std::shared_ptr<const PreparedCall>> plan(const Call& call);
  bool is_exchange(const Call& call, const PreparedCall& prepared) const;
  Result<std::byte*> scratch(std::size_t bytes);
  Result<std::shared_ptr<EnqueuedOperation>> put_in_turn(const Call& call, DeviceQueue program,
                                                         Follower follower);
  Status make_room(std::uint32_t commands, Operation& meeting);
  Status await(const std::function<Result<bool>()>& has_come, Operation& meeting) const;
  Status put_commands(const Call& call, const PreparedCall& prepared, std::byte* scratch,
                      DeviceQueue program, EnqueuedOperation& operation,
                      std::vector<WordOfRank>& waits);
  Status put_end(const EnqueuedOperation& operation, DeviceQueue last);
  std::size_t blocks_bytes(const PreparedCall& prepared) const;
  Status put_exchange(const DeviceExchange& exchange, DeviceQueue program, bool directly,
                      EnqueuedOperation& operation);
  Status fail(const Status& why, const EnqueuedOperation& operation);

  const std::shared_ptr<Comm> comm_;  // longer than all that its transports show
  const std::shared_ptr<DeviceCopies> copies_;
  std::unique_ptr<Wires> wires_;
  Moments moments_;
  std::unique_ptr<Exchanges> exchanges_;  // null: there are none
  Agreement agreement_{*this};
  PlanningFacts facts_;
  const std::vector<Publications*> no_transports_;
  PlanCache plans_;
  std::mutex plans_mutex_;
  std::mutex mutex_;  // of the rest
  QueueState state_;
  std::vector<std::unique_ptr<Channel>> channels_;  // by peer, two each; null: of this rank
  std::uint32_t calls_ = 0;
  LastCalls last_calls_;
  DeviceMoment before_ = nullptr;  // in the program's queue
  std::vector<void*> scratch_;     // the last one is in use, by a call or none
  std::size_t scratch_bytes_ = 0;
  QueueRoom room_of_out_, room_of_in_;
};

}  // namespace anyccl
