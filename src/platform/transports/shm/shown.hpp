#pragma once
// Memory that the ranks of a communicator show each other on request, beside that of the transport:
// see Transport::show(). The peer table calls this code.

#include <memory>

#include "platform/transport/transport.hpp"
#include "platform/transports/shm/control.hpp"
#include "platform/transports/shm/memory.hpp"

namespace anyccl::shm {

/// Memory of one rank that it shows its peers, as it is mapped here.
class Shown {
 public:
  /// Memory of this rank, zeroed.
  static Result<std::shared_ptr<Shown>> make(std::size_t read_bytes, std::size_t written_bytes);
  /// The memory that a peer has told of. Errors: remote_error.
  static Result<std::shared_ptr<const Shown>> take(const ControlMessage& message,
                                                   const Descriptors& fds, bool same_process);
  /// Tells a peer of memory of this rank.
  static Status tell(const std::shared_ptr<Shown>& mine, link::Channel& to, bool same_process);

  ShownMemory memory() const {
    return {read_.mapping.data(), number_ != 0, written_.mapping.data()};
  }
  bool is_as_large_as(const Shown& other) const {
    return read_.mapping.size() == other.read_.mapping.size() &&
           written_.mapping.size() == other.written_.mapping.size();
  }

 private:
  SharedMemory read_, written_;
  std::uint64_t number_ = 0;  // in this process; 0: another process shows it
};

}  // namespace anyccl::shm
