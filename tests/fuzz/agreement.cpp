// What ranks that are left of a communicator say to each other until they agree who they are: rank
// 1 of three hears what the input has the two others say.

#include "runtime/members/agreement.hpp"

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <vector>

#include "input.hpp"
#include "platform/link/link.hpp"
#include "platform/transports/unix_socket/unix_transport.hpp"
#include "support/transports.hpp"
#include "unit/framework/fake_peers.hpp"

namespace anyccl::fuzz {
namespace {

constexpr int kRanks = 3;
constexpr Rank kMe{1};

std::shared_ptr<Comm> failed_comm() {
  Membership m;
  m.rank = kMe;
  m.size = kRanks;
  m.near_of.assign(kRanks, 0);
  m.transports.push_back(std::make_unique<test::PresentPeers>(std::vector{Rank{0}, Rank{2}}));
  return std::make_shared<Comm>(std::move(m));
}

class Victim {
 public:
  Victim() : comm_(failed_comm()) {
    Inheritance all;
    const auto key = context_key_of(all.secret, "agreement");
    test::require(key.ok(), "context_key_of");
    key_ = *key;
    for (const Rank peer : {Rank{0}, Rank{2}}) {
      test::Ends ends = test::connected_on_one_host();
      const std::shared_ptr<link::Link> link(
          new link::Link(unix_socket::unix_socket(), nullptr, peer, {}));
      test::require(link->attach(std::move(ends[0]), nullptr).ok(), "attach");
      peers_[uindex(peer)] = std::move(ends[1]);
      all.links.push_back({peer, link, true, false});
    }
    auto made = Agreement::among(*comm_, all);
    test::require(made.ok(), "among");
    agreement_ = *std::move(made);
    static_cast<void>(agreement_->decide({}, Deadline::in(std::chrono::seconds(0))));
    link::FrameHeader said;
    test::require(::recv(peers_[0].get(), &said, sizeof said, MSG_WAITALL) == sizeof said,
                  "what this rank says itself");
    statement_bytes_ = said.bytes;
  }

  void do_next(Input& input) {
    const auto what = input.take<std::uint8_t>();
    UniqueFd& peer = peers_[what % 2 == 0 ? 0 : 2];
    switch (what / 2 % 8) {
      case 0:
        peer = UniqueFd();
        return;
      case 1:
        return decide(input);
      case 2:
        return say(peer, input.take_bytes(input.take<std::uint8_t>()));
      default:
        return say(peer, statement(input));
    }
  }

 private:
  /// One of the right size, about a few rounds and leaders, mostly.
  std::vector<std::byte> statement(Input& input) const {
    constexpr std::size_t kRound = 0, kFollows = 4, kFormed = 24;
    std::vector<std::byte> bytes(statement_bytes_);
    const auto shape = input.take<std::uint8_t>();
    const auto rest = input.take_bytes(shape % 4 == 0 ? bytes.size() : 2);
    std::copy(rest.begin(), rest.end(), bytes.end() - static_cast<long>(rest.size()));
    if (shape % 4 == 0) return bytes;
    bytes[kRound] = std::byte(shape / 4 % 4);
    const auto follows = static_cast<std::int32_t>(shape / 16 % 4) - 1;
    std::memcpy(&bytes[kFollows], &follows, sizeof follows);
    bytes[kFormed] = std::byte(shape / 64 % 2);
    return bytes;
  }
  void say(const UniqueFd& peer, std::span<const std::byte> payload) const {
    if (peer.get() < 0) return;
    link::FrameHeader header;
    header.type = link::kNotice;
    header.bytes = static_cast<std::uint32_t>(payload.size());
    header.context = key_;
    std::vector<std::byte> frame(sizeof header + payload.size());
    std::memcpy(frame.data(), &header, sizeof header);
    std::copy(payload.begin(), payload.end(), frame.begin() + sizeof header);
    static_cast<void>(::send(peer.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  void decide(Input& input) {
    Agreement::Ballot mine;
    mine.formed = input.take<std::uint8_t>() % 2 != 0;
    const auto decision = agreement_->decide(mine, Deadline::in(std::chrono::seconds(0)));
    if (!decision.ok()) return;
    test::require(!decision->gone.at(uindex(kMe)), "a decision without this rank is an error here");
    agreement_->note_survivors(*decision);
    test::require(!agreement_->survivors().empty(), "survivors");
  }

  const std::shared_ptr<Comm> comm_;
  link::ContextKey key_ = 0;
  std::array<UniqueFd, kRanks> peers_;
  std::shared_ptr<Agreement> agreement_;
  std::size_t statement_bytes_ = 0;
};

}  // namespace

void run(Input input) {
  Victim victim;
  while (!input.empty()) victim.do_next(input);
}

}  // namespace anyccl::fuzz
