#include "platform/transports/shm/control.hpp"

#include <cstring>

namespace anyccl::shm {
namespace {

/// Makes `message` and `fds` of a notice; a malformed one becomes an abort that says so.
void read(link::Notice& notice, ControlMessage& message, Descriptors& fds) {
  fds = {};
  for (std::size_t i = 0; i < notice.descriptors.size() && i < fds.size(); ++i)
    fds[i] = std::move(notice.descriptors[i]);
  if (notice.payload.size() == sizeof message) {
    std::memcpy(&message, notice.payload.data(), sizeof message);
  } else {
    message = {};
    message.kind = ControlMessage::abort;
    message.code = static_cast<int>(Code::remote_error);
    std::strcpy(message.text, "a peer sent what cannot be understood");
  }
  message.text[sizeof message.text - 1] = '\0';
}

}  // namespace

Status send(link::Channel& to, const ControlMessage& message, std::array<int, 2> fds) {
  std::size_t count = 0;
  for (const int fd : fds)
    if (fd >= 0) fds[count++] = fd;
  return to.send_notice(std::as_bytes(std::span(&message, 1)), std::span(fds).first(count));
}

bool receive(link::Channel& from, ControlMessage& message, Descriptors& fds) {
  link::Notice notice;
  if (!from.next_notice(notice)) return false;
  read(notice, message, fds);
  return true;
}

Status await(link::Channel& from, ControlMessage& message, Descriptors& fds, Deadline deadline) {
  link::Notice notice;
  const Status got = from.await_notice(notice, deadline);
  if (got.ok()) read(notice, message, fds);
  return got;
}

}  // namespace anyccl::shm
