#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <vector>

#include "base/deadline.hpp"
#include "platform/bootstrap/frame.hpp"
#include "platform/bootstrap/lobby.hpp"
#include "platform/bootstrap/roster.hpp"

namespace anyccl {

/// What a root server does, without its thread: lets ranks in, reads their hellos, waits until all
/// are there, and delivers the verdict. One poll(2) loop; `stop_event` is an eventfd that ends it.
class Gathering {
 public:
  Gathering(std::vector<UniqueFd> listeners, const Secret& secret, Trust trust, int stop_event);
  /// Returns when the verdict is delivered, or soon after the stop event.
  void run();

 private:
  struct Member {
    UniqueFd socket;
    Mac session{};
    std::uint32_t rank = 0;
    bool joined = false;
    Inbox in;
    Outbox out;
    Deadline hello_due, patience;
    double patience_s = 0;
  };
  /// Until all are there. Errors: why the group cannot be formed.
  Status gather();
  Status poll_once(std::vector<pollfd>& entries);
  int poll_ms() const;
  void admit_guests();
  Status read_from_members(std::span<const pollfd> entries);
  Status read_hello(Member& member);
  Status check_patience() const;

  Result<std::vector<std::byte>> group_payload() const;
  void deliver(const Status& verdict);
  Status prepare(Member& member, Frame kind,
                 const std::shared_ptr<const std::vector<std::byte>>& payload);
  void flush_members();

  std::vector<UniqueFd> listeners_;
  Lobby lobby_;
  int stop_event_;
  Roster roster_;
  std::vector<Member> members_;
};

}  // namespace anyccl
