#include "platform/bootstrap/mesh/connect.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/log.hpp"
#include "platform/bootstrap/auth/acceptor.hpp"
#include "platform/bootstrap/auth/dial.hpp"
#include "platform/bootstrap/group/known_paths.hpp"
#include "platform/bootstrap/group/member_table.hpp"
#include "platform/bootstrap/socket/interfaces.hpp"

namespace anyccl::bootstrap {
namespace {

std::vector<Acceptor::Listener> listeners_of(const Listeners& listeners) {
  std::vector<Acceptor::Listener> all{{listeners.unix_socket.get(), true}};
  for (const TcpListener& tcp : listeners.tcp) all.push_back({tcp.socket.get(), false});
  return all;
}

/// One rank's part in connecting everyone: calls the lower ranks, is called by the higher ones.
class Mesh {
 public:
  Mesh(const Listeners& listeners, std::span<const Hello> members, Rank me, const Secret& secret,
       Acquaintances* known, const std::vector<bool>& later, bool encrypts);

  Status call_lower_ranks(const Secret& secret, bool force_tcp);
  Result<std::vector<PeerSocket>> connect_rest(Deadline deadline);

 private:
  Status ask_acquaintances();
  /// Waits for events into entries_, the acceptor's first; nothing is advanced.
  Status poll_once(Deadline deadline);
  Status advance_dials();
  /// Makes it the connection with `peer`, which has none yet.
  void take_connection(Connection connection, std::uint32_t peer);
  Status take_accepted();
  bool is_missing(std::uint32_t peer) const { return !known_[peer] && !sockets_[peer].fd; }
  bool is_expected(std::uint32_t peer) const {
    return peer > me_ && peer < members_.size() && is_missing(peer);
  }
  /// Whether a connection of acquaintances_ to `peer` is being tried; until then it is not dialed.
  bool is_tried(std::uint32_t peer) const {
    return acquaintances_ != nullptr &&
           acquaintances_->tries(Rank{static_cast<std::int32_t>(peer)});
  }
  Status timeout_error() const;
  std::string why_missing(std::uint32_t peer) const;

  std::span<const Hello> members_;
  std::uint32_t me_;
  bool encrypts_;
  Acceptor acceptor_;
  Acquaintances* acquaintances_;
  std::vector<bool> known_;                 // by rank, this one too, and those of later
  std::vector<std::optional<Dial>> dials_;  // by peer, all below me_
  std::vector<PeerSocket> sockets_;
  std::size_t connected_ = 0;  // known_ and sockets_
  std::vector<pollfd> entries_;
};

Mesh::Mesh(const Listeners& listeners, std::span<const Hello> members, Rank me,
           const Secret& secret, Acquaintances* known, const std::vector<bool>& later,
           bool encrypts)
    : members_(members),
      me_(uindex(me)),
      encrypts_(encrypts),
      acceptor_(
          listeners_of(listeners), secret, me_, Trust::secret,
          [this](std::uint32_t from) { return is_expected(from); }, encrypts),
      acquaintances_(known),
      known_(later),
      dials_(me_),
      sockets_(members.size()) {
  known_.resize(members.size());
  known_[me_] = true;
  connected_ = static_cast<std::size_t>(std::count(known_.begin(), known_.end(), true));
}

Status Mesh::ask_acquaintances() {
  if (acquaintances_ == nullptr) return {};
  ANYCCL_CHECK(acquaintances_->advance());
  for (std::uint32_t peer = 0; peer < members_.size(); ++peer) {
    const Rank rank{static_cast<std::int32_t>(peer)};
    if (!is_missing(peer) || !acquaintances_->has(rank)) continue;
    known_[peer] = true;
    ++connected_;
  }
  return {};
}

Status Mesh::call_lower_ranks(const Secret& secret, bool force_tcp) {
  if (me_ == 0) return {};
  ANYCCL_TRY(const OwnNetwork own, OwnNetwork::find());
  for (std::uint32_t peer = 0; peer < me_; ++peer) {
    if (known_[peer]) continue;
    std::vector<Endpoint> endpoints = endpoints_of(members_[me_], members_[peer], own, force_tcp);
    if (endpoints.empty())
      return error(Code::system_error, "{} has no network address that {} could reach",
                   describe(members_[peer]), describe(members_[me_]));
    std::string note = own.missing_family(endpoints);
    dials_[peer].emplace(secret, Dial::Target{std::move(endpoints), me_, peer, Trust::secret,
                                              std::move(note), encrypts_});
  }
  return {};
}

Result<std::vector<PeerSocket>> Mesh::connect_rest(Deadline deadline) {
  for (;;) {
    ANYCCL_CHECK(ask_acquaintances());
    ANYCCL_CHECK(advance_dials());
    if (connected_ == members_.size()) break;
    if (deadline.passed()) return timeout_error();
    ANYCCL_CHECK(poll_once(deadline));
    ANYCCL_CHECK(acceptor_.progress(std::span(entries_).first(acceptor_.wanted())));
    ANYCCL_CHECK(take_accepted());
  }
  std::erase_if(sockets_, [](const PeerSocket& socket) { return !socket.fd; });
  return std::move(sockets_);
}

Status Mesh::poll_once(Deadline deadline) {
  // Another thread may take in the answer that comes over an acquaintance.
  constexpr int kLookEvery = 2;  // ms
  int wait = acceptor_.poll_ms(deadline.poll_ms(acquaintances_ == nullptr ? 1000 : kLookEvery));
  entries_.clear();
  acceptor_.append_wanted(entries_);
  for (std::uint32_t peer = 0; peer < me_; ++peer) {
    if (!is_missing(peer) || is_tried(peer)) continue;
    dials_[peer]->append_wanted(entries_);
    wait = dials_[peer]->poll_ms(wait);
  }
  if (acquaintances_ != nullptr) acquaintances_->append_wanted(entries_);
  if (::poll(entries_.data(), entries_.size(), wait) >= 0) return {};
  if (errno != EINTR) return system_error(errno, "poll while connecting to the other ranks");
  for (pollfd& entry : entries_) entry.revents = 0;
  return {};
}

Status Mesh::advance_dials() {
  for (std::uint32_t peer = 0; peer < me_; ++peer) {
    if (!is_missing(peer) || is_tried(peer)) continue;
    if (Status s = dials_[peer]->advance(); !s.ok())
      return error(s.code(), "cannot connect to {}: {}", describe(members_[peer]), s.message());
    if (!dials_[peer]->done()) continue;
    Connection made = dials_[peer]->take_connection();
    if (!made.local) KnownPaths::of_process().remember(members_[peer], made.to);
    take_connection(std::move(made), peer);
  }
  return {};
}

void Mesh::take_connection(Connection connection, std::uint32_t peer) {
  PeerSocket& into = sockets_[peer];
  into.rank = Rank{static_cast<std::int32_t>(peer)};
  into.local = connection.local;
  into.same_process =
      same_process(members_[me_], members_[peer]) && leads_to_this_process(connection.socket.get());
  into.fd = std::move(connection.socket);
  into.session = connection.session;
  into.secure = std::move(connection.secure);
  ++connected_;
}

Status Mesh::take_accepted() {
  for (Connection& connection : acceptor_.take_authenticated()) {
    const std::uint32_t peer = connection.from;
    if (!is_expected(peer)) {
      log(LogSubsystem::net, "dropped a connection that says it is rank {}, which is not expected",
          peer);
      continue;
    }
    take_connection(std::move(connection), peer);
  }
  return {};
}

std::string Mesh::why_missing(std::uint32_t peer) const {
  if (peer < me_) return dials_[peer]->problems();
  std::vector<std::string> places;
  for (const Address& address : addresses_of(members_[me_])) places.push_back(to_string(address));
  return fmt::format("it did not connect to this rank, which listens at {}",
                     fmt::join(places, ", "));
}

Status Mesh::timeout_error() const {
  std::vector<std::size_t> missing;
  std::string details;
  for (std::uint32_t peer = 0; peer < members_.size(); ++peer) {
    if (!is_missing(peer)) continue;
    missing.push_back(peer);
    if (missing.size() > 3) continue;
    details += fmt::format("; {}: {}", describe(members_[peer]), why_missing(peer));
  }
  if (const std::string refusals = acceptor_.refusals(); !refusals.empty())
    details += "; " + refusals;
  return error(Code::timeout, "rank {} connected to {} of {} other ranks in time; missing: {}{}",
               me_, connected_ - 1, members_.size() - 1, list_ranks(missing), details);
}

}  // namespace

Result<std::vector<PeerSocket>> connect_all(const Listeners& listeners,
                                            std::span<const Hello> members, Rank me,
                                            const Secret& secret, bool force_tcp, Deadline deadline,
                                            Acquaintances* known, const std::vector<bool>& later,
                                            bool encrypts) {
  if (uindex(me) >= members.size())
    return error(Code::invalid_argument, "rank {} is not in a group of {} ranks", index(me),
                 members.size());
  Mesh mesh(listeners, members, me, secret, known, later, encrypts);
  ANYCCL_CHECK(mesh.call_lower_ranks(secret, force_tcp));
  return mesh.connect_rest(deadline);
}

}  // namespace anyccl::bootstrap
