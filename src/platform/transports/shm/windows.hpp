#pragma once
// A window is memory of the arena that peers map, so that they read data where it lies. Its owner
// announces it with a notice over each link before the first use, and closes it with another one
// when the memory has gone back to the system. The peer table calls this code.

#include <atomic>
#include <optional>
#include <unordered_map>
#include <vector>

#include "platform/transports/shm/arena.hpp"
#include "platform/transports/shm/connect.hpp"

namespace anyccl::shm {

/// The windows of this process that the peers of one communicator know.
class Windows {
 public:
  /// Both are borrowed; `notices` counts for the peers.
  Windows(std::vector<Peer>& peers, std::atomic<std::uint32_t>& notices)
      : peers_(peers), notices_(notices) {}

  /// The window's number between this rank and its peers; none if they cannot be told.
  std::optional<std::uint32_t> share_window(const Arena::Window& window);
  /// Has the peers unmap what was given back since the last call.
  void close_returned() {
    if (!numbers_.empty() && returned_ != Arena::of_process().returned()) close();
  }

 private:
  bool tell_peers(const ControlMessage& message, int fd);
  /// Has the peers unmap the windows whose regions have gone back to the system.
  void close();

  std::vector<Peer>& peers_;
  std::atomic<std::uint32_t>& notices_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // by Arena::Window::id
  std::uint32_t next_ = 0;
  std::uint64_t returned_ = 0;  // how many regions had gone when this was last looked at
};

/// A peer has announced a window, or closed one, which stays mapped among the closed ones.
Status take_notice(Peer& peer, const ControlMessage& message, const UniqueFd& fd);

}  // namespace anyccl::shm
