#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"

namespace anyccl {

/// One issued operation. advance() is called by the holder of the communicator's owner token;
/// anybody may ask done().
class Task {
 public:
  virtual ~Task() = default;
  /// Goes on as far as it can without waiting; true if anything moved. Sets done().
  virtual bool advance() = 0;
  /// The ranks it waits for now.
  virtual void awaited(std::vector<Rank>& ranks) const = 0;

  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Only after done().
  const Status& status() const { return status_; }
  void complete(Status status) {
    status_ = std::move(status);
    done_.store(
        true,
        std::memory_order_release);  // pairs with done(): then the result and status are there
  }

 protected:
  void restart() { done_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> done_{false};
  Status status_;
};

}  // namespace anyccl
