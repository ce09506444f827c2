#pragma once
// Communicators and their messages keep what waits in Fifos: there are several for each peer.

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace anyccl {

/// A queue that has no memory until something is in it, and keeps its memory then. For short queues
/// of which there are many: an empty std::deque has more than 500 bytes.
///
/// push_back() and erase() invalidate references and iterators.
template <typename T>
class Fifo {
 public:
  using iterator = typename std::vector<T>::iterator;
  using const_iterator = typename std::vector<T>::const_iterator;

  bool empty() const { return first_ == items_.size(); }
  std::size_t size() const { return items_.size() - first_; }
  iterator begin() { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  iterator end() { return items_.end(); }
  const_iterator begin() const { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  const_iterator end() const { return items_.end(); }
  T& front() { return items_[first_]; }
  const T& front() const { return items_[first_]; }
  T& back() { return items_.back(); }
  const T& back() const { return items_.back(); }

  void push_back(T item) {
    // Room in front is used again when it is half of all, so that an item is moved once on average.
    if (items_.size() == items_.capacity() && first_ > 0 && 2 * first_ >= items_.size()) {
      items_.erase(items_.begin(), begin());
      first_ = 0;
    }
    items_.push_back(std::move(item));
  }
  void pop_front() {
    items_[first_] = T();
    if (++first_ == items_.size()) clear();
  }
  /// Returns the item behind it.
  iterator erase(iterator at) {
    if (at != begin()) return items_.erase(at);
    pop_front();
    return begin();
  }
  void clear() {
    items_.clear();
    first_ = 0;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;  // those before it are gone
};

}  // namespace anyccl
