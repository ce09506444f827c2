// Both ends of an encrypted connection, with a third party on the wire that changes bytes: what is
// read is what was sent, or nothing.

#include "platform/tls/tls.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>

#include "input.hpp"
#include "support/transports.hpp"

namespace anyccl::fuzz {
namespace {

struct Change {
  std::uint16_t at;
  std::byte mask;
};

/// Changes what one end sends, and puts bytes in front of a part of it.
class Attacker final : public SecureStream::Wire {
 public:
  ssize_t send(int fd, std::span<const std::byte> bytes) override {
    std::vector<std::byte> changed(bytes.begin(), bytes.end());
    for (const Change& change : changes)
      if (change.at >= passed && change.at - passed < changed.size())
        changed[change.at - passed] ^= change.mask;
    if (insert_at >= passed && insert_at - passed < changed.size() && !inserted.empty())
      changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(insert_at - passed),
                     inserted.begin(), inserted.end());
    passed += bytes.size();
    const ssize_t n = ::send(fd, changed.data(), changed.size(), MSG_NOSIGNAL);
    return n < 0 ? n : static_cast<ssize_t>(bytes.size());
  }
  ssize_t receive(int fd, std::span<std::byte> into) override {
    return ::recv(fd, into.data(), into.size(), 0);
  }
  std::vector<Change> changes;
  std::size_t passed = 0, insert_at = 0;
  std::vector<std::byte> inserted;
};

struct End {
  UniqueFd socket;
  std::unique_ptr<SecureStream> stream;
  Attacker attacker;
  bool failed = false;
};

/// What was sent comes out, and nothing else.
void exchange(End& from, End& to) {
  const std::vector<std::byte> sent = test::pattern(20000, 1);
  const iovec out{const_cast<std::byte*>(sent.data()), sent.size()};
  static_cast<void>(from.stream->write(from.socket.get(), {&out, 1}));
  std::vector<std::byte> got(sent.size() + 1);
  std::size_t count = 0;
  for (ssize_t n = 1; n > 0; count += static_cast<std::size_t>(std::max<ssize_t>(n, 0))) {
    const iovec in{got.data() + count, got.size() - count};
    n = to.stream->read(to.socket.get(), {&in, 1});
  }
  test::require(
      count <= sent.size() &&
          std::equal(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(count), got.begin()),
      "what was read is what was sent");
}

}  // namespace

void run(Input input) {
  std::array<End, 2> ends;
  test::Ends sockets = test::connected_on_one_host();
  tls::Key key;
  key.fill(std::byte{1});
  for (std::size_t i = 0; i < 2; ++i) {
    ends[i].socket = std::move(sockets[i]);
    test::require(::fcntl(ends[i].socket.get(), F_SETFL, O_NONBLOCK) == 0, "fcntl");
    auto made = tls::make_stream(i == 0 ? tls::Side::client : tls::Side::server, key);
    test::require(made.ok(), "make_stream");
    ends[i].stream = std::move(*made);
    ends[i].stream->go_through(&ends[i].attacker);
  }
  for (auto count = input.take<std::uint8_t>() % 8; count > 0; --count) {
    Attacker& attacker = ends[input.take<std::uint8_t>() % 2].attacker;
    const auto at = input.take<std::uint16_t>();
    attacker.changes.push_back({at, input.take<std::byte>()});
  }
  Attacker& attacker = ends[input.take<std::uint8_t>() % 2].attacker;
  attacker.insert_at = input.take<std::uint16_t>();
  const auto rest = input.rest();
  attacker.inserted.assign(rest.begin(), rest.end());
  for (int turn = 0; turn < 4; ++turn)
    for (End& end : ends)
      if (!end.failed && !end.stream->is_ready())
        end.failed = !end.stream->shake_hands(end.socket.get()).ok();
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)})
    if (ends[0].stream->is_ready() && ends[1].stream->is_ready())
      exchange(ends[static_cast<std::size_t>(from)], ends[static_cast<std::size_t>(to)]);
}

}  // namespace anyccl::fuzz
