#pragma once
// The C interface asks here what messages have come that no receive has asked for yet.

#include <cstdint>
#include <memory>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// Looks for messages without receiving them. Errors are of arguments, and as a receive.
///
/// Threads: any. The communicator is borrowed.
class Probing {
 public:
  explicit Probing(Comm& comm) : comm_(comm) {}

  /// Waits for a message that a receive from `source`, which may be kAnySource, with `tag` would
  /// get if it were called now, and tells of it; in_progress at `deadline`.
  Status wait(Rank source, std::uint32_t tag, Deadline deadline, MessageFacts& found);
  /// Tells of such a message without waiting; false: there is none yet.
  Result<bool> look(Rank source, std::uint32_t tag, MessageFacts& found);
  /// Issues the receive of a message that a probe has told of; null if it is not there any more, as
  /// another thread has received it. `out` has room for it.
  Result<std::shared_ptr<Operation>> receive(const MessageFacts& message, std::byte* out);

 private:
  Status check(Rank source) const;
  Result<bool> look_locked(Rank source, std::uint32_t tag, MessageFacts& found);

  Comm& comm_;
};

}  // namespace anyccl
