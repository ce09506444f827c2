#include "platform/fabric/flow.hpp"

#include <utility>

namespace anyccl::fabric {

void Window::asked(const Key& key) {
  const std::lock_guard lock(asked_mutex_);
  if (asked_.size() == kMostAsked) asked_.pop_front();
  asked_.push_back(key);
  has_asked_.store(true, std::memory_order_release);
}

bool Window::is_asked_for(const Key& key) const {
  const std::lock_guard lock(asked_mutex_);
  return std::find(asked_.begin(), asked_.end(), key) != asked_.end();
}

bool Window::should_ask(const Key& key) {
  if (held() == 0 || std::find(wanted_.begin(), wanted_.end(), key) != wanted_.end()) return false;
  if (wanted_.size() == kMostAsked) wanted_.pop_front();
  wanted_.push_back(key);
  return true;
}

void Flow::drop(Arrival arrival) {
  window.consumed(arrival.header.bytes);
  context->arrivals.fetch_sub(1, std::memory_order_relaxed);
  BufferPool::of_process().give(std::move(arrival.buffer));
}

}  // namespace anyccl::fabric
