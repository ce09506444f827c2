#pragma once
// Two ends of an encrypted connection in one thread, and what goes over the wire between them.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "platform/tls/tls.hpp"
#include "support/transports.hpp"

namespace anyccl::test {

using Bytes = std::vector<std::byte>;

inline tls::Key key_of(std::uint8_t digit) {
  tls::Key key;
  key.fill(static_cast<std::byte>(digit));
  return key;
}

/// Keeps what an end sends, and may change it before it goes on.
class Tap final : public SecureStream::Wire {
 public:
  ssize_t send(int fd, std::span<const std::byte> bytes) override {
    Bytes changed(bytes.begin(), bytes.end());
    if (change) change(changed);
    const ssize_t n = ::send(fd, changed.data(), changed.size(), MSG_NOSIGNAL);
    if (n != static_cast<ssize_t>(changed.size()))
      return n < 0 ? n : std::min(n, static_cast<ssize_t>(bytes.size()));
    sent.insert(sent.end(), changed.begin(), changed.end());
    return static_cast<ssize_t>(bytes.size());
  }
  ssize_t receive(int fd, std::span<std::byte> into) override {
    return ::recv(fd, into.data(), into.size(), 0);
  }
  std::function<void(Bytes&)> change;
  Bytes sent;
};

struct End {
  UniqueFd socket;
  std::unique_ptr<SecureStream> stream;
  Status problem;  // Of the handshake.

  int fd() const { return socket.get(); }
  ssize_t write(std::span<const std::byte> bytes) const {
    const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return stream->write(fd(), {&part, 1});
  }
  /// All that is there now, in pieces of `piece` bytes; -1 and errno at an error, as read() has it.
  ssize_t read_into(Bytes& all, std::size_t piece = 10000) const {
    for (ssize_t n = 1; n > 0;) {
      const std::size_t before = all.size();
      all.resize(before + piece);
      const iovec part{all.data() + before, piece};
      n = stream->read(fd(), {&part, 1});
      all.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
      if (n <= 0) return n < 0 && errno == EAGAIN ? 1 : n;
    }
    return 1;
  }
};

inline std::array<End, 2> make_ends(const tls::Key& of_client, const tls::Key& of_server,
                                    std::uint32_t records_per_key = tls::kRecordsPerKey) {
  Ends sockets = connected_on_one_host();
  std::array<End, 2> ends;
  for (std::size_t i = 0; i < 2; ++i) {
    require(::fcntl(sockets[i].get(), F_SETFL, O_NONBLOCK) == 0, "fcntl");
    auto made = tls::make_stream(i == 0 ? tls::Side::client : tls::Side::server,
                                 i == 0 ? of_client : of_server, records_per_key);
    require(made.ok(), "make_stream");
    ends[i] = {std::move(sockets[i]), std::move(*made), {}};
  }
  return ends;
}

/// Both go on until they are ready or have failed.
inline void shake_hands(std::array<End, 2>& ends) {
  for (int round = 0; round < 10; ++round)
    for (End& end : ends)
      if (end.problem.ok() && !end.stream->is_ready())
        end.problem = end.stream->shake_hands(end.fd());
}

inline std::array<End, 2> ready_ends(std::uint32_t records_per_key = tls::kRecordsPerKey) {
  auto ends = make_ends(key_of(1), key_of(1), records_per_key);
  shake_hands(ends);
  for (const End& end : ends) {
    EXPECT_TRUE(end.problem.ok()) << end.problem.message();
    EXPECT_TRUE(end.stream->is_ready());
  }
  return ends;
}

/// Writes everything, while the other end reads it.
inline Bytes pass(const End& from, const End& to, std::span<const std::byte> bytes) {
  Bytes got;
  for (std::size_t sent = 0; got.size() < bytes.size();) {
    if (sent < bytes.size()) {
      const ssize_t n = from.write(bytes.subspan(sent));
      require(n >= 0 || errno == EAGAIN, "write");
      sent += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
    }
    require(from.stream->flush(from.fd()), "flush");
    if (to.read_into(got) <= 0) break;
  }
  return got;
}

inline bool has(std::span<const std::byte> all, std::string_view text) {
  const std::string_view chars(reinterpret_cast<const char*>(all.data()), all.size());
  return chars.find(text) != std::string_view::npos;
}

}  // namespace anyccl::test
