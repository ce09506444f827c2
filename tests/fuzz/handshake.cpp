// Both ends of the handshake, with a third party on the wire that changes bytes.

#include "platform/bootstrap/auth/handshake.hpp"

#include <sys/socket.h>

#include "input.hpp"
#include "support/transports.hpp"

namespace anyccl::fuzz {
namespace {

using bootstrap::Handshake;

struct End {
  UniqueFd own, wire;
  std::size_t passed = 0;  // bytes that came from it
};

End make_end() {
  int ends[2] = {-1, -1};
  test::require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
                "socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

struct Change {
  std::uint16_t at;
  std::byte mask;
};

/// Moves what has come at `from` to `to`, changed.
void pass_on(End& from, const End& to, std::span<const Change> changes) {
  std::byte bytes[256];
  for (ssize_t n = 0; (n = ::recv(from.wire.get(), bytes, sizeof bytes, 0)) > 0;) {
    for (const Change& change : changes)
      if (change.at >= from.passed && change.at - from.passed < static_cast<std::size_t>(n))
        bytes[change.at - from.passed] ^= change.mask;
    from.passed += static_cast<std::size_t>(n);
    static_cast<void>(::send(to.wire.get(), bytes, static_cast<std::size_t>(n), MSG_NOSIGNAL));
  }
}

}  // namespace

void run(Input input) {
  auto connector = Handshake::connector(bootstrap::Secret(), 1, 0),
       acceptor = Handshake::acceptor(bootstrap::Secret(), 0);
  End left = make_end(), right = make_end();
  std::vector<Change> there, back;
  for (auto count = input.take<std::uint8_t>() % 8; count > 0; --count) {
    const bool returns = input.take<std::uint8_t>() % 2 != 0;
    const Change change{input.take<std::uint16_t>(), input.take<std::byte>()};
    (returns ? back : there).push_back(change);
  }
  // What comes from nowhere goes to one of the two.
  const bool at_acceptor = input.take<std::uint8_t>() % 2 != 0;
  const auto bytes = input.rest();
  if (!bytes.empty())
    static_cast<void>(::send((at_acceptor ? right : left).wire.get(), bytes.data(), bytes.size(),
                             MSG_NOSIGNAL | MSG_DONTWAIT));
  for (int turn = 0; turn < 6; ++turn) {
    if (!connector->advance(left.own.get()).ok()) break;
    if (connector->proved() && !connector->send_proof().ok()) break;
    pass_on(left, right, there);
    if (!acceptor->advance(right.own.get()).ok()) break;
    pass_on(right, left, back);
  }
}

}  // namespace anyccl::fuzz
