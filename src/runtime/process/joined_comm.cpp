#include "runtime/process/joined_comm.hpp"

#include "runtime/process/process.hpp"

namespace anyccl {

std::optional<Rank> only_rank_of(const bootstrap::Hello& process,
                                 const std::vector<bootstrap::Hello>& members) {
  std::optional<Rank> rank;
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (!same_process(process, members[r])) continue;
    if (rank) return std::nullopt;
    rank = Rank{static_cast<std::int32_t>(r)};
  }
  return rank;
}

JoinedComm::JoinedComm(GroupPtr group, Rank me, const std::vector<PeerLink>& links,
                       std::string transport, std::string id)
    : group_(std::move(group)), me_(me), transport_(std::move(transport)), id_(std::move(id)) {
  for (const PeerLink& peer : links)
    links_.push_back({peer.rank, peer.link, peer.local, peer.same_process});
}

const JoinedComm& JoinedComm::of(const Comm& comm) {
  return static_cast<const JoinedComm&>(*comm.membership().around);
}

Inheritance JoinedComm::inheritance() const {
  Inheritance inheritance{group_->secret, {group_, &group_->members}, {}, transport_};
  for (const Link& peer : links_)
    inheritance.links.push_back({peer.rank, peer.link.lock(), peer.local, peer.same_process});
  return inheritance;
}

std::vector<std::shared_ptr<link::Link>> JoinedComm::links() const {
  std::vector<std::shared_ptr<link::Link>> links;
  for (const Link& peer : links_)
    if (auto link = peer.link.lock()) links.push_back(std::move(link));
  return links;
}

int JoinedComm::process_of(Rank rank) const {
  const bootstrap::Hello& me = members()[uindex(me_)];
  const bootstrap::Hello& other = members()[uindex(rank)];
  // A process of another container may have the same number.
  if (!same_host(me, other) || (other.pid == me.pid && !same_process(me, other))) return 0;
  return static_cast<int>(other.pid);
}

std::string JoinedComm::call_elsewhere(Rank rank) const {
  const bootstrap::Hello& other = members()[uindex(rank)];
  return only_rank_of(other, members()) ? Process::get().call_elsewhere(other, id_) : "";
}

void JoinedComm::note_ended(const Membership& me, const SpentCalls& calls) const {
  Process::get().metrics().add(me, calls);
}

Inheritance inheritance_of(const Comm& comm) {
  return JoinedComm::of(comm).inheritance();
}

}  // namespace anyccl
