#pragma once

#include <atomic>
#include <optional>
#include <unordered_map>
#include <vector>

#include "platform/transport/shm/arena.hpp"
#include "platform/transport/shm/connect.hpp"

namespace anyccl::shm {

/// The parts of this process's arena that the peers of one communicator know: a window is announced
/// before it is first lent, and closed when its memory has gone back to the system.
class Windows {
 public:
  /// Both are borrowed; `notices` counts for the peers.
  Windows(std::vector<Peer>& peers, std::atomic<std::uint32_t>& notices)
      : peers_(peers), notices_(notices) {}

  /// The window's number between this rank and its peers; none if they cannot be told.
  std::optional<std::uint32_t> number_of(const Arena::Window& window);
  /// Has the peers unmap what was given back since the last call.
  void close_returned() {
    if (!numbers_.empty() && returned_ != Arena::of_process().returned()) close();
  }

 private:
  bool tell(const ControlMessage& message, int fd);
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
