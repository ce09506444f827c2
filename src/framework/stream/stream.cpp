#include "framework/stream/stream.hpp"

#include <pthread.h>

#include <algorithm>
#include <system_error>

#include "base/callback.hpp"
#include "base/error.hpp"
#include "base/fork.hpp"
#include "base/signals.hpp"
#include "framework/communicator/one_sided_calls.hpp"

namespace anyccl {
namespace {

thread_local const HostStream* stream_here = nullptr;  // whose worker this thread is

class Function final : public StreamItem {
 public:
  Function(void (*function)(void*), void* argument) : function_(function), argument_(argument) {}
  /// Errors: the function has thrown.
  Status run(const Status&) override {
    const InCallback marked(Callback::stream_function);
    return call_program("a function in a stream", function_, argument_);
  }
  bool is_foreign() const override { return true; }

 private:
  void (*function_)(void*);
  void* argument_;
};

class Reach final : public StreamItem {
 public:
  explicit Reach(std::shared_ptr<Moment> moment) : moment_(std::move(moment)) {}
  Status run(const Status& so_far) override {
    moment_->reach(so_far);
    return {};
  }
  bool is_mark() const override { return true; }
  bool is_needed_by(const Awaited& awaited) const override {
    return awaited.moment == moment_.get();
  }

 private:
  std::shared_ptr<Moment> moment_;
};

class WaitFor final : public StreamItem {
 public:
  explicit WaitFor(std::shared_ptr<const Moment> moment) : moment_(std::move(moment)) {}
  Status run(const Status&) override { return moment_->wait(); }

 private:
  std::shared_ptr<const Moment> moment_;
};

/// Whether `call` waits for an operation of its communicator that was called before.
bool comes_before(const Operation& operation, const Call& call) {
  const auto* const message = dynamic_cast<const MessageRequest*>(&operation);
  if (!call.is_point_to_point()) return dynamic_cast<const Execution*>(&operation) != nullptr;
  if (message == nullptr || message->call().collective != call.collective) return false;
  const Rank peer = message->call().root;
  return peer == call.root ||
         peer == kAnySource;  // what comes for a closed receive blocks its pair
}

}  // namespace

HostStream::HostStream(std::uint64_t number)
    : fork_generation_((watch_forks(), anyccl::fork_generation())),
      number_(static_cast<std::uint8_t>(std::min<std::uint64_t>(number, 255))) {}

Status HostStream::check() const {
  if (anyccl::fork_generation() == fork_generation_) return {};
  return error(Code::invalid_usage,
               "this stream was created before fork; create it in the process that uses it");
}

Status HostStream::start() {
  const std::lock_guard lock(mutex_);
  try {
    if (worker_ == std::thread::id()) {
      const SignalsBlocked blocked;
      std::thread worker([self = shared_from_this()] { self->work(); });
      worker_ = worker.get_id();
      worker.detach();
    }
    ++promised_;
    return {};
  } catch (const std::system_error& problem) {
    return system_error(problem.code().value(), "starting a stream's thread");
  }
}

void HostStream::push(Items items) noexcept {
  {
    const std::lock_guard lock(mutex_);
    --promised_;
    pushed_ += items.size();
    queue_.splice(queue_.end(), items);
  }
  ready_.notify_one();
}

Status HostStream::add(std::unique_ptr<StreamItem> item) {
  Items items;
  items.push_back(std::move(item));
  ANYCCL_CHECK(start());
  push(std::move(items));
  return {};
}

Status HostStream::call(void (*function)(void*), void* argument) {
  return add(std::make_unique<Function>(function, argument));
}
Status HostStream::record(std::shared_ptr<Moment> moment) {
  return add(std::make_unique<Reach>(std::move(moment)));
}
Status HostStream::wait_for(std::shared_ptr<const Moment> moment) {
  return add(std::make_unique<WaitFor>(std::move(moment)));
}

Status HostStream::synchronize() {
  std::unique_lock lock(mutex_);
  if (std::this_thread::get_id() == worker_)
    return error(Code::invalid_usage, "a function in a stream cannot wait for its own stream");
  if (running_ != nullptr) running_->note_wait();
  for (const auto& item : queue_) item->note_wait();
  finished_.wait(lock, [&, until = pushed_] { return done_ >= until; });
  return first_error_;
}

void HostStream::note_wait(const Moment& moment) const {
  const std::lock_guard lock(mutex_);
  const auto end = std::find_if(queue_.begin(), queue_.end(), [&](const auto& item) {
    return item->is_needed_by({.moment = &moment});
  });
  if (end == queue_.end()) return;  // the stream has come to it meanwhile
  if (running_ != nullptr) running_->note_wait();
  std::for_each(queue_.begin(), end, [](const auto& item) { item->note_wait(); });
}

Status HostStream::check_wait(const Awaited& awaited) {
  if (stream_here == nullptr) return {};
  const std::lock_guard lock(stream_here->mutex_);
  const Items& queue = stream_here->queue_;
  if (std::none_of(queue.begin(), queue.end(),
                   [&](const auto& item) { return item->is_needed_by(awaited); }))
    return {};
  return error(
      Code::invalid_usage,
      "a function in a stream cannot wait for what stands behind it in its own stream: it would "
      "wait for itself");
}

Result<bool> HostStream::query() const {
  const std::lock_guard lock(mutex_);
  if (!first_error_.ok()) return first_error_;
  return done_ == pushed_;
}

void HostStream::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  ready_.notify_one();
}

void HostStream::stop(Deadline deadline) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  if (std::this_thread::get_id() == worker_) return;  // a function of the stream ends the program
  finished_.wait_for(lock, std::chrono::milliseconds(deadline.poll_ms()),
                     [&] { return !in_foreign_code_; });
}

void HostStream::work() {
  ::pthread_setname_np(::pthread_self(), "anyccl-stream");
  stream_here = this;
  std::unique_lock lock(mutex_);
  for (;;) {
    ready_.wait(lock, [&] { return (closed_ && promised_ == 0) || !queue_.empty(); });
    if (stopping_) return;
    if (queue_.empty()) {  // a prepared call or an open group may still use the stream
      worker_ = {};
      return;
    }
    Items item;
    item.splice(item.end(), queue_, queue_.begin());
    // A mark is told with the lock: no thread sees it told and not done, or done and not told.
    if (item.front()->is_mark()) {
      static_cast<void>(item.front()->run(first_error_));
      ++done_;
      finished_.notify_all();
      continue;
    }
    running_ = item.front().get();
    in_foreign_code_ = running_->is_foreign();
    const Status so_far = first_error_;
    lock.unlock();
    Status status;
    try {
      status = item.front()->run(so_far);
    } catch (const std::exception& e) {
      status = Status(Code::system_error, e.what());
    }
    lock.lock();
    if (first_error_.ok()) first_error_ = std::move(status);
    in_foreign_code_ = false;
    running_ = nullptr;
    lock.unlock();
    item.clear();  // whoever waits sees it gone
    lock.lock();
    ++done_;
    finished_.notify_all();
  }
}

class Batch::Operations final : public StreamItem {
 public:
  explicit Operations(std::size_t most) { pending_.reserve(most); }
  Status run(const Status&) override {
    for (const PendingOperation& pending : pending_) pending.comm->open(*pending.operation);
    return wait_all(pending_, false);
  }
  void note_wait() const override {
    for (const PendingOperation& pending : pending_) pending.comm->note_wait(*pending.operation);
  }
  void add(const std::shared_ptr<Comm>& comm, std::shared_ptr<Operation> operation) {
    pending_.push_back({comm, std::move(operation)});
  }
  bool has_last(const Operation& operation) const {
    return !pending_.empty() && pending_.back().operation.get() == &operation;
  }
  bool empty() const { return pending_.empty(); }
  bool is_needed_by(const Awaited& awaited) const override {
    return std::any_of(pending_.begin(), pending_.end(), [&](const PendingOperation& mine) {
      if (mine.operation.get() == awaited.operation) return true;
      return mine.comm.get() == awaited.comm &&
             (awaited.call == nullptr || comes_before(*mine.operation, *awaited.call));
    });
  }

 private:
  std::vector<PendingOperation> pending_;
};

Result<Batch> Batch::make(std::shared_ptr<HostStream> stream, std::size_t most) {
  Batch batch(std::move(stream), most);
  if (Status started = batch.stream_->start(); !started.ok()) {
    batch.items_.clear();  // so that nothing is pushed
    return started;
  }
  return batch;
}

Batch::Batch(std::shared_ptr<HostStream> stream, std::size_t most) : stream_(std::move(stream)) {
  auto operations = std::make_unique<Operations>(most);
  operations_ = operations.get();
  items_.push_back(std::move(operations));
}

Batch::~Batch() {
  if (items_.empty()) return;  // it was moved
  if (operations_->empty()) items_.clear();
  stream_->push(std::move(items_));
}

Result<std::shared_ptr<Operation>> Batch::issue(const std::shared_ptr<Comm>& comm,
                                                const Call& call) {
  auto operation = comm->issue(call, Gate::closed_by(stream_->number()));
  if (operation.ok()) operations_->add(comm, *operation);
  return operation;
}

Result<std::shared_ptr<Operation>> Batch::start(const std::shared_ptr<Comm>& comm,
                                                PersistentRequest& call) {
  auto operation = call.start(Gate::closed_by(stream_->number()));
  if (operation.ok()) operations_->add(comm, *operation);
  return operation;
}

Result<std::shared_ptr<Operation>> Batch::issue(const std::shared_ptr<Comm>& comm,
                                                const OneSidedCall& call) {
  auto operation = OneSidedCalls(*comm).issue(call, Gate::closed_by(stream_->number()));
  if (operation.ok()) operations_->add(comm, *operation);
  return operation;
}

bool Batch::add(const std::shared_ptr<Comm>& comm, const std::shared_ptr<Operation>& operation) {
  if (operations_->has_last(*operation)) return false;
  operations_->add(comm, operation);
  return true;
}

}  // namespace anyccl
