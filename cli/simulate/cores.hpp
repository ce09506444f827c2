#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace anyccl::cli {

/// The cores of hosts that have fewer of them than ranks. A rank runs on one until it waits, in the
/// order in which ranks became able to run.
class Cores {
 public:
  Cores(std::uint32_t hosts, std::uint32_t cores) : hosts_(hosts) {
    for (Host& host : hosts_) host.free = cores;
  }
  /// False: no core is free, and the rank is now the last in the queue for one.
  bool take(std::uint32_t host, std::uint32_t rank) {
    if (hosts_[host].free == 0) {
      hosts_[host].queue.push_back(rank);
      return false;
    }
    --hosts_[host].free;
    return true;
  }
  /// The rank that gets the core of one that waits.
  std::optional<std::uint32_t> give_back(std::uint32_t host) {
    auto& queue = hosts_[host].queue;
    if (queue.empty()) {
      ++hosts_[host].free;
      return {};
    }
    const std::uint32_t next = queue.front();
    queue.pop_front();
    return next;
  }

 private:
  struct Host {
    std::uint32_t free = 0;
    std::deque<std::uint32_t> queue;
  };
  std::vector<Host> hosts_;
};

}  // namespace anyccl::cli
