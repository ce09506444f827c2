#pragma once
// Streams put pieces of work into hardware queues; each queue is a thread that does one piece after
// the other. With few connections, streams share queues, and one that waits holds up the others.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::simulated {

inline constexpr cuda::Error kIllegalState = 401;
inline constexpr cuda::Error kNotPermitted = 800;

/// Whether a piece of work is done, and when that was in modelled time.
class Ticket {
 public:
  void complete(double time);
  void wait() const;
  bool is_done() const;
  /// The time, once it is done.
  double time() const { return time_; }

 private:
  std::atomic<std::uint32_t> done_{0};
  double time_ = 0;
};
using TicketPtr = std::shared_ptr<Ticket>;

/// Does the work that may begin at a time, and says when it ends.
using Run = std::function<double(double)>;

struct Work {
  cuda::Stream stream = nullptr;
  std::vector<TicketPtr> after;
  TicketPtr ticket;
  double submitted = 0;
  Run run;
};

/// A hardware queue. It has room for SIMULATED_CUDA_DEPTH pieces of work beside the one being done.
class Queue {
 public:
  /// Waits for room.
  void put(Work work);
  /// Waits for work; nothing, once the queue is closed and empty.
  std::optional<Work> take();
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::deque<Work> waiting_;
  bool closed_ = false;
};

/// Modelled time of the calling thread.
double& host_time();
/// Waits for the work, and goes on at the time when it was done.
void wait_for(const TicketPtr& ticket);

cuda::Stream make_stream(cuda::Context context, bool blocking, int priority);
/// Work that is queued still runs. The handle stays known as one that is destroyed.
cuda::Error destroy_stream(cuda::Stream stream);
/// The stream of a handle; 0 and 1 are the null stream of the current context.
cuda::Error resolve(cuda::Stream handle, cuda::Stream& stream);
/// The ticket of the last piece of work; null if there was none.
TicketPtr tail_of(cuda::Stream stream);
/// Waits for all work of a context, also that of streams that are destroyed.
void finish(cuda::Context context);
/// Whether another stream that obeys the null stream is being captured.
bool is_implicitly_captured(cuda::Stream null_stream);
/// Clocks of all streams start anew.
void forget_stream_times();

/// Puts work into a stream, behind all that it has and the work that `after` names.
cuda::Error push(cuda::Stream handle, Run run, std::vector<TicketPtr> after = {},
                 TicketPtr* pushed = nullptr);

}  // namespace anyccl::simulated

struct anyccl::cuda::StreamTag {
  anyccl::cuda::Context context = nullptr;
  anyccl::simulated::Queue* queue = nullptr;
  bool blocking = false;    ///< It obeys the rule of the null stream.
  bool owns_queue = false;  ///< No other stream uses the queue.
  std::atomic<bool> capturing{false};
  std::mutex mutex;  ///< Guards the tail, and makes the order of calls that of work.
  anyccl::simulated::TicketPtr tail;  ///< The last piece of work; null: there was none.
  std::atomic<double> time{0};        ///< Pairs with nothing: the queue's thread and resets use it.
};
