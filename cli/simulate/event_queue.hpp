#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <vector>

namespace anyccl::cli {

enum class EventKind : std::uint8_t { flow_begins, flow_ends, rank_is_free, rank_has_core };

struct Event {
  EventKind kind;
  std::uint32_t subject;      ///< The number of the flow or rank.
  std::uint32_t version = 0;  ///< The flow's; an older event means nothing any more.
};

/// Events by time, in seconds. Ranks that move in step make many events of exactly one time: these
/// share a bucket, and only buckets are sorted.
class EventQueue {
 public:
  void push(double time, Event event) {
    for (const Open& open : open_)
      if (open.time == time) return buckets_[open.bucket].push_back(event);
    std::uint32_t bucket = 0;
    if (free_.empty()) {
      bucket = static_cast<std::uint32_t>(buckets_.size());
      buckets_.emplace_back();
    } else {
      bucket = free_.back();
      free_.pop_back();
    }
    buckets_[bucket].push_back(event);
    heap_.push({time, bucket});
    open_[next_open_++ % open_.size()] = {time, bucket};
  }
  bool empty() const { return heap_.empty(); }
  double next() const { return heap_.top().time; }
  /// Moves the events of one bucket, of the earliest time, to `events`. Another bucket may have
  /// that time.
  double take(std::vector<Event>& events) {
    const Open first = heap_.top();
    heap_.pop();
    for (Open& open : open_)
      if (open.bucket == first.bucket) open = {};
    events.clear();
    events.swap(buckets_[first.bucket]);
    free_.push_back(first.bucket);
    return first.time;
  }

 private:
  struct Open {
    double time = -1;  // before all events
    std::uint32_t bucket = ~0U;
    bool operator<(const Open& other) const { return time > other.time; }  // the earliest on top
  };
  std::priority_queue<Open> heap_;
  std::vector<std::vector<Event>> buckets_;
  std::vector<std::uint32_t> free_;
  std::array<Open, 4> open_;  ///< Buckets that were begun last: those that are likely to get more.
  std::size_t next_open_ = 0;
};

}  // namespace anyccl::cli
