#pragma once
// Messages are structs that travel as they lie in memory: without padding, and little endian.
// Handshakes and frames use them. Two functions here wait in the calling thread, with a deadline.
// Outbox and Inbox never wait: they serve code that polls many sockets.

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "anyccl/status.hpp"
#include "base/deadline.hpp"

namespace anyccl::bootstrap {

template <typename T>
concept Message = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

template <Message T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

/// `bytes` must hold at least a T.
template <Message T>
T read_as(std::span<const std::byte> bytes) {
  T message;
  std::memcpy(&message, bytes.data(), sizeof message);
  return message;
}

// --- with a deadline: nonblocking stream socket, the calling thread waits ------------------------
// `peer` names the other end in errors ("rank 3"). Errors: timeout; remote_error when the peer
// closed or reset the connection; system_error.

/// Waits until `events` of poll(2), or an error, is there.
Status wait_for(int fd, short events, Deadline deadline, std::string_view peer);
Status send_all(int fd, std::span<const std::byte> bytes, Deadline deadline, std::string_view peer);

// --- without waiting: as much as goes now --------------------------------------------------------

/// Bytes that still have to be sent.
class Outbox {
 public:
  void put(std::span<const std::byte> bytes) {
    own_.insert(own_.end(), bytes.begin(), bytes.end());
  }
  /// Bytes that go to many peers, sent after all of put(); at most once per outbox.
  void put_shared(std::shared_ptr<const std::vector<std::byte>> bytes) {
    shared_ = std::move(bytes);
  }
  /// Ok also if the socket does not take all: empty() says. `peer`: the other end in errors.
  /// Errors: remote_error, system_error.
  Status flush(int fd, std::string_view peer = "the peer");
  bool empty() const { return sent_ == own_.size() + (shared_ ? shared_->size() : 0); }

 private:
  std::vector<std::byte> own_;
  std::shared_ptr<const std::vector<std::byte>> shared_;
  std::size_t sent_ = 0;
};

/// A message that arrives in pieces. Never reads past its end, so whatever follows stays in the
/// socket.
class Inbox {
 public:
  void expect(std::size_t bytes) {
    bytes_.resize(bytes);
    received_ = 0;
  }
  /// As Outbox::flush(): ok also if the message is not whole, as full() says.
  Status fill(int fd, std::string_view peer = "the peer");
  bool full() const { return received_ == bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// What has come of it.
  std::span<const std::byte> received() const { return bytes().first(received_); }
  /// Gives the message away. Nothing is read before the next expect().
  std::vector<std::byte> take() {
    received_ = 0;
    return std::exchange(bytes_, {});
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t received_ = 0;
};

}  // namespace anyccl::bootstrap
