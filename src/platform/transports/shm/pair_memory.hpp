#pragma once
// Two processes remember at their link how they share memory: the volumes that each has mapped, and
// whether each can read the private memory of the other. So a further communicator over the same
// link need not map and try them once more. The code that connects peers reads it and fills it.

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>

#include "platform/link/channel.hpp"
#include "platform/transports/shm/cma.hpp"
#include "platform/transports/shm/heap.hpp"

namespace anyccl::shm {

/// The companion of a link for the shm transport.
/// Threads: any.
class PairMemory final : public link::Companion {
 public:
  static PairMemory& of(const link::Channel& channel) {
    return channel.link().companion<PairMemory>();
  }

  /// That of this process of which the peer is shown blocks; null: none yet. It stays the same.
  std::shared_ptr<SharedHeap> heap() const {
    const std::lock_guard lock(mutex_);
    return heap_;
  }
  /// Keeps the heap of this process whose blocks the peer is shown, if there is none yet. Whether
  /// it is the one that is kept: another thread's may have come first.
  bool keep_first_heap(const std::shared_ptr<SharedHeap>& heap) {
    const std::lock_guard lock(mutex_);
    if (heap_ == nullptr) heap_ = heap;
    return heap_ == heap;
  }

  /// Whether the peer has mapped this volume of ours.
  bool has_shown(std::uint32_t number) const {
    const std::lock_guard lock(mutex_);
    return shown_.contains(number);
  }
  void set_shown(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    shown_.insert(number);
  }

  /// The peer's volume of this number; null: it has not been mapped.
  std::shared_ptr<const PeerVolume> volume(std::uint32_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = volumes_.find(number);
    return found == volumes_.end() ? nullptr : found->second;
  }
  /// The one that was there before, if there was one.
  std::shared_ptr<const PeerVolume> add(std::uint32_t number,
                                        std::shared_ptr<const PeerVolume> volume) {
    const std::lock_guard lock(mutex_);
    return volumes_.emplace(number, std::move(volume)).first->second;
  }

  /// Whose private memory can be read where, once it was tried.
  struct PrivateReads {
    CmaReader memory;       ///< The peer's, if it can be read here.
    bool reads_us = false;  ///< It can read ours.
  };
  PrivateReads private_reads() const {
    const std::lock_guard lock(mutex_);
    return reads_;
  }
  void set_private_reads(PrivateReads reads) {
    const std::lock_guard lock(mutex_);
    reads_ = std::move(reads);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<SharedHeap> heap_;
  std::set<std::uint32_t> shown_;
  std::map<std::uint32_t, std::shared_ptr<const PeerVolume>> volumes_;
  PrivateReads reads_;
};

}  // namespace anyccl::shm
