#include "framework/stream/event.hpp"

#include "base/error.hpp"
#include "base/fork.hpp"
#include "framework/stream/stream.hpp"

namespace anyccl {

void Moment::reach(const Status& so_far) {
  {
    const std::lock_guard lock(mutex_);
    time_ = Clock::now();
    so_far_ = so_far;
    reached_ = true;
  }
  changed_.notify_all();
}

bool Moment::reached() const {
  const std::lock_guard lock(mutex_);
  return reached_;
}

void Moment::note_wait() const {
  if (reached()) return;
  if (const auto stream = stream_.lock()) stream->note_wait(*this);
}

Status Moment::wait() const {
  note_wait();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return reached_; });
  return so_far_;
}

bool Moment::wait_for(std::chrono::milliseconds time) const {
  note_wait();
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return reached_; });
}

Moment::Clock::time_point Moment::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

HostEvent::HostEvent() : fork_generation_((watch_forks(), anyccl::fork_generation())) {}

Status HostEvent::check() const {
  if (anyccl::fork_generation() == fork_generation_) return {};
  return error(Code::invalid_usage,
               "this event was created before fork; create it in the process that uses it");
}

Status HostEvent::record(HostStream& stream) {
  const auto moment = std::make_shared<Moment>(stream.weak_from_this());
  const std::lock_guard lock(mutex_);  // the latest one here is the latest one in the stream, too
  ANYCCL_CHECK(stream.record(moment));
  latest_ = moment;
  return {};
}

std::shared_ptr<const Moment> HostEvent::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

Result<std::chrono::nanoseconds> elapsed(const HostEvent& start, const HostEvent& end) {
  const auto from = start.latest(), to = end.latest();
  if (from == nullptr || to == nullptr)
    return error(Code::invalid_usage, "the {} event was never recorded",
                 from == nullptr ? "start" : "end");
  if (!from->reached() || !to->reached())
    return error(Code::in_progress, "the {} event is not reached yet",
                 from->reached() ? "end" : "start");
  return to->time() - from->time();
}

}  // namespace anyccl
