#include "streams.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <shared_mutex>
#include <thread>

#include "contexts.hpp"
#include "faults.hpp"
#include "settings.hpp"

namespace anyccl::simulated {
namespace {

constexpr int kMostUrgent = -5;

struct Connections {
  std::size_t next = 0;
  std::vector<Queue*> queues;
};

/// Streams are never deleted, so that a handle that was destroyed is no other stream's. Looking up
/// takes a shared lock, so that it orders no threads.
struct Streams {
  std::shared_mutex mutex;
  std::set<cuda::Stream> living;
  std::vector<cuda::Stream> destroyed;
  std::map<std::pair<int, int>, Connections> connections;  // keys are devices and priorities
};
Streams& streams() {
  static Streams& all = *new Streams;  // threads outlive destructors
  return all;
}

/// A call that waits for room in a queue holds it: other calls that put work into any stream wait,
/// too.
std::mutex& driver_lock() {
  static std::mutex& lock = *new std::mutex;
  return lock;
}

void do_work(const Work& work) {
  double start = std::max(work.stream->time.load(std::memory_order_relaxed), work.submitted);
  for (const TicketPtr& earlier : work.after) {
    earlier->wait();
    start = std::max(start, earlier->time());
  }
  dither();
  if (strikes("lost")) lose_device();
  const double end = work.run && !is_lost() ? work.run(start) : start;
  work.stream->time.store(end, std::memory_order_relaxed);
  work.ticket->complete(end);
}

Queue* make_queue() {
  auto* const queue = new Queue;  // as long as the process: its streams are, too
  std::thread([queue] {
    while (const std::optional<Work> work = queue->take()) do_work(*work);
  }).detach();
  return queue;
}

/// With few connections, streams of one device and priority take turns at them.
Queue* find_queue(Streams& all, int device, int priority) {
  const Settings& set = settings();
  if (set.connections == 0) return make_queue();
  const int level = set.one_priority ? 0 : std::clamp(priority, kMostUrgent, 0);
  Connections& shared = all.connections[{device, level}];
  if (shared.queues.size() < set.connections) shared.queues.push_back(make_queue());
  return shared.queues[shared.next++ % shared.queues.size()];
}

std::vector<cuda::Stream> streams_of(cuda::Context context) {
  Streams& all = streams();
  const std::shared_lock lock(all.mutex);
  std::vector<cuda::Stream> found;
  for (const cuda::Stream stream : all.living)
    if (stream->context == context) found.push_back(stream);
  return found;
}

/// Work of the null stream comes after that of all streams that obey it, and theirs after its.
void add_null_stream_rule(cuda::Stream stream, std::vector<TicketPtr>& after) {
  if (!stream->blocking) return;
  const cuda::Stream null_stream = stream->context->null_stream;
  std::vector<cuda::Stream> before{null_stream};
  if (stream == null_stream) before = streams_of(stream->context);
  for (const cuda::Stream one : before) {
    if (one == stream || !one->blocking) continue;
    if (TicketPtr tail = tail_of(one)) after.push_back(std::move(tail));
  }
}

}  // namespace

void Ticket::complete(double time) {
  time_ = time;
  done_.store(1, std::memory_order_release);  // pairs with wait() and is_done()
  done_.notify_all();
}
void Ticket::wait() const {
  while (!is_done()) done_.wait(0, std::memory_order_acquire);  // pairs with complete()
}
bool Ticket::is_done() const {
  return done_.load(std::memory_order_acquire) != 0;
}

void Queue::put(Work work) {
  const std::size_t depth = settings().depth;
  {
    std::unique_lock lock(mutex_);
    if (depth != 0) room_.wait(lock, [&] { return waiting_.size() < depth; });
    waiting_.push_back(std::move(work));
  }
  ready_.notify_one();
}

std::optional<Work> Queue::take() {
  std::optional<Work> work;
  {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return work;
    work = std::move(waiting_.front());
    waiting_.pop_front();
  }
  if (settings().depth != 0) room_.notify_all();
  return work;
}

void Queue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  ready_.notify_one();
}

double& host_time() {
  thread_local double time = 0;
  return time;
}

void wait_for(const TicketPtr& ticket) {
  ticket->wait();
  host_time() = std::max(host_time(), ticket->time());
}

cuda::Stream make_stream(cuda::Context context, bool blocking, int priority) {
  Streams& all = streams();
  const std::unique_lock lock(all.mutex);
  auto* const stream = new cuda::StreamTag;
  stream->context = context;
  stream->queue = find_queue(all, context->device, priority);
  stream->owns_queue = settings().connections == 0;
  stream->blocking = blocking;
  all.living.insert(stream);
  return stream;
}

cuda::Error destroy_stream(cuda::Stream stream) {
  {
    Streams& all = streams();
    const std::unique_lock lock(all.mutex);
    if (!all.living.contains(stream) || stream == stream->context->null_stream)
      return cuda::kInvalidHandle;
    all.living.erase(stream);
    all.destroyed.push_back(stream);
  }
  leave_behind(stream->context, tail_of(stream));
  if (stream->owns_queue) stream->queue->close();
  return cuda::kSuccess;
}

cuda::Error resolve(cuda::Stream handle, cuda::Stream& stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number == 2) return cuda::kNotSupported;  // a null stream per thread
  if (number < 2) {
    if (current_context() == nullptr) return cuda::kInvalidContext;
    stream = current_context()->null_stream;
    return cuda::kSuccess;
  }
  Streams& all = streams();
  const std::shared_lock lock(all.mutex);
  if (!all.living.contains(handle)) return cuda::kInvalidHandle;
  stream = handle;
  return cuda::kSuccess;
}

TicketPtr tail_of(cuda::Stream stream) {
  const std::lock_guard lock(stream->mutex);
  return stream->tail;
}

void finish(cuda::Context context) {
  for (const cuda::Stream stream : streams_of(context))
    if (const TicketPtr tail = tail_of(stream)) wait_for(tail);
  for (const TicketPtr& tail : left_behind(context)) wait_for(tail);
}

bool is_implicitly_captured(cuda::Stream null_stream) {
  const std::vector<cuda::Stream> all = streams_of(null_stream->context);
  return std::any_of(all.begin(), all.end(), [](cuda::Stream one) {
    return one->blocking && one->capturing.load(std::memory_order_relaxed);
  });
}

void forget_stream_times() {
  Streams& all = streams();
  const std::shared_lock lock(all.mutex);
  for (const cuda::Stream stream : all.living) stream->time.store(0, std::memory_order_relaxed);
}

cuda::Error push(cuda::Stream handle, Run run, std::vector<TicketPtr> after, TicketPtr* pushed) {
  cuda::Stream stream = nullptr;
  if (const cuda::Error error = resolve(handle, stream); error != cuda::kSuccess) return error;
  if (stream->capturing.load(std::memory_order_relaxed)) return cuda::kCaptureUnsupported;
  if (stream == stream->context->null_stream && is_implicitly_captured(stream))
    return cuda::kCaptureImplicit;
  host_time() += settings().model.call - settings().model.small_call;
  add_null_stream_rule(stream, after);
  Work work{stream, std::move(after), std::make_shared<Ticket>(), host_time(), std::move(run)};
  if (pushed != nullptr) *pushed = work.ticket;
  std::unique_lock<std::mutex> driver;
  if (settings().depth != 0) driver = std::unique_lock(driver_lock());
  const std::lock_guard order(stream->mutex);
  stream->tail = work.ticket;
  stream->queue->put(std::move(work));
  return cuda::kSuccess;
}

}  // namespace anyccl::simulated
