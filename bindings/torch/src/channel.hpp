#pragma once
// One communicator, made safe for use by many threads.

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string_view>

#include "anyccl/anyccl.h"

namespace anyccl::torch {

/// Calls are in the order in which threads come to them. After close() or abort() they fail.
class Channel {
 public:
  /// Starts to join; finished by ready().
  Channel(const anycclUniqueId& id, int rank, int size);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Returns when all ranks have joined. Throws after `deadline`.
  void ready(std::chrono::steady_clock::time_point deadline);

  /// `use` may call the communicator; it throws what fails.
  template <typename Use>
  void with(std::string_view name, const Use& use) {
    const std::lock_guard lock(mutex_);
    const anycclComm_t comm = comm_.load(std::memory_order_relaxed);
    if (comm == nullptr) [[unlikely]]
      throw_closed(name);
    use(comm);
  }

  anycclResult_t error();
  /// Completes what was issued, takes leave and frees the communicator. After `timeout` it aborts.
  /// True unless it did that.
  bool close(std::chrono::milliseconds timeout);
  /// All operations fail, here and at the peers.
  void abort();

 private:
  [[noreturn]] void throw_closed(std::string_view name) const;

  std::timed_mutex mutex_;  // of calls on the communicator
  // Null once it is closed. Written under the mutex, but for an abort of who holds it too long.
  std::atomic<anycclComm_t> comm_ = nullptr;
};

}  // namespace anyccl::torch
