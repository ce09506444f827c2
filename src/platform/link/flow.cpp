#include "platform/link/flow.hpp"

#include <utility>

namespace anyccl::link {

void Window::note_asked(const Key& key) {
  const std::lock_guard lock(asked_mutex_);
  if (asked_.size() == kMostAsked) asked_.erase(asked_.begin());  // more than a receiver asks for
  asked_.push_back(key);
  has_asked_.store(true, std::memory_order_release);
}

void Window::note_sent(const Key& key, std::size_t bytes) {
  sent_ += cost_of(bytes);
  if (!has_asked_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(asked_mutex_);
  std::erase(asked_, key);
  has_asked_.store(!asked_.empty(), std::memory_order_release);
}

void Window::note_arrived(const Key& key, std::size_t bytes) {
  arrived_ += cost_of(bytes);
  if (!wanted_.empty()) std::erase(wanted_, key);
}

void Window::note_not_arrived(const Key& key, std::size_t bytes) {
  arrived_ -= cost_of(bytes);
  wanted_.push_back(key);  // It may have been, and then was more than the window allows.
}

bool Window::is_asked_for(const Key& key) const {
  const std::lock_guard lock(asked_mutex_);
  return std::find(asked_.begin(), asked_.end(), key) != asked_.end();
}

bool Window::should_ask(const Key& key) {
  if (held() == 0 || wanted_.size() == kMostAsked ||
      std::find(wanted_.begin(), wanted_.end(), key) != wanted_.end())
    return false;
  wanted_.push_back(key);
  return true;
}

void Flow::drop(Arrival arrival) {
  window.note_consumed(arrival.header.bytes);
  context->arrivals.fetch_sub(1, std::memory_order_relaxed);
  BufferPool::of_process().give(std::move(arrival.buffer));
}

}  // namespace anyccl::link
