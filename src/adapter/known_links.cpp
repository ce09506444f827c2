#include "adapter/known_links.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/per_process.hpp"

namespace anyccl {
namespace {

using ProcessName = std::array<std::byte, 16>;  // as in Hello

struct KnownLink {
  LinkIdentity identity;
  std::weak_ptr<fabric::Link> link;
  bool local = false;
};

/// All that this process has, by the process at the other end.
class KnownLinks {
 public:
  void add(const ProcessName& peer, KnownLink link) {
    const std::lock_guard lock(mutex_);
    std::vector<KnownLink>& known = links_[peer];
    std::erase_if(known, [](const KnownLink& one) { return one.link.expired(); });
    known.push_back(std::move(link));
  }
  std::vector<KnownLink> to(const ProcessName& peer) {
    const std::lock_guard lock(mutex_);
    const auto found = links_.find(peer);
    return found == links_.end() ? std::vector<KnownLink>() : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<ProcessName, std::vector<KnownLink>> links_;
};

struct UsableLink {
  std::shared_ptr<fabric::Link> link;
  std::array<std::byte, 32> session{};
  bool local = false;
};

/// In an order that is the same at the other end.
std::vector<UsableLink> candidates_for(const bootstrap::Hello& mine, const bootstrap::Hello& peer,
                                       bool force_network) {
  const bool near = bootstrap::same_host(mine, peer) && !force_network;
  std::vector<UsableLink> all;
  for (const KnownLink& known : per_process<KnownLinks>().to(peer.process))
    if (auto link = known.link.lock();
        link != nullptr && (near || !known.local) && link->is_alive())
      all.push_back({std::move(link), known.identity.session, known.local});
  std::sort(all.begin(), all.end(), [](const UsableLink& a, const UsableLink& b) {
    return a.local != b.local ? a.local : a.session < b.session;
  });
  return all;
}

/// One member that this process knows.
class Reunion {
 public:
  Reunion(const bootstrap::Group& group, Rank me, Rank peer, std::vector<UsableLink> candidates)
      : group_(group), me_(me), peer_(peer), candidates_(std::move(candidates)) {}

  bool is_over() const { return channel_ == nullptr; }
  /// The link on which both sides have proved themselves; null: there is none.
  const UsableLink* result() const { return proved_ ? &candidates_[next_ - 1] : nullptr; }
  Rank peer() const { return peer_; }
  pollfd events() { return channel_->events(); }

  /// Greets the peer over the next link.
  Status begin(const std::shared_ptr<fabric::Context>& context) {
    while (next_ < candidates_.size()) {
      const UsableLink& candidate = candidates_[next_++];
      auto channel = candidate.link->open(context, peer_);
      if (!channel.ok()) continue;
      ANYCCL_TRY(const bootstrap::Mac proof, proof_of(me_, peer_, candidate.session));
      ANYCCL_CHECK((*channel)->send_notice(proof, {}));
      channel_ = std::move(*channel);
      return {};
    }
    channel_.reset();
    return {};
  }
  Status advance(const std::shared_ptr<fabric::Context>& context) {
    const bool gone = channel_->is_gone();
    fabric::Notice notice;
    if (!channel_->next_notice(notice)) return gone ? begin(context) : Status();
    ANYCCL_TRY(const bootstrap::Mac expected, proof_of(peer_, me_, candidates_[next_ - 1].session));
    bootstrap::Mac claimed{};
    if (notice.payload.size() == claimed.size())
      std::memcpy(claimed.data(), notice.payload.data(), claimed.size());
    if (!bootstrap::same_mac(claimed, expected)) return begin(context);
    proved_ = true;
    channel_->goodbye();
    channel_.reset();
    return {};
  }

 private:
  Result<bootstrap::Mac> proof_of(Rank from, Rank to,
                                  const std::array<std::byte, 32>& session) const {
    const std::array<std::int32_t, 2> ranks{index(from), index(to)};
    return bootstrap::hmac(group_.secret.bytes(), "anyccl meets again",
                           {session, std::as_bytes(std::span(ranks))});
  }

  const bootstrap::Group& group_;
  const Rank me_, peer_;
  std::vector<UsableLink> candidates_;
  std::size_t next_ = 0;
  std::unique_ptr<fabric::Channel> channel_;
  bool proved_ = false;
};

/// Whether `member` is the only rank of its process.
bool is_alone(const bootstrap::Group& group, const bootstrap::Hello& member) {
  return std::count_if(group.members.begin(), group.members.end(), [&](const auto& other) {
           return bootstrap::same_process(member, other);
         }) == 1;
}

Status meet_all(std::vector<Reunion>& reunions, const std::shared_ptr<fabric::Context>& context,
                Deadline deadline) {
  // Another thread may take in what comes, and this one would not wake up.
  constexpr int kLongest = 1;  // ms
  for (Reunion& one : reunions) ANYCCL_CHECK(one.begin(context));
  for (;;) {
    std::vector<pollfd> events;
    for (Reunion& one : reunions) {
      if (!one.is_over()) ANYCCL_CHECK(one.advance(context));
      if (!one.is_over()) events.push_back(one.events());
    }
    if (events.empty() || deadline.passed()) return {};
    ::poll(events.data(), events.size(), deadline.poll_ms(kLongest));
  }
}

}  // namespace

void remember_links(const bootstrap::Group& group, const std::vector<PeerLink>& links,
                    const std::vector<LinkIdentity>& identities) {
  for (std::size_t i = 0; i < links.size(); ++i)
    if (!links[i].same_process)
      per_process<KnownLinks>().add(group.members[uindex(links[i].rank)].process,
                                    {identities[i], links[i].link, links[i].local});
}

Result<std::vector<PeerLink>> find_links(const bootstrap::Group& group, Rank me, bool force_network,
                                         Deadline deadline) {
  std::vector<PeerLink> found;
  const bootstrap::Hello& mine = group.members[uindex(me)];
  if (!is_alone(group, mine)) return found;
  std::vector<Reunion> reunions;
  for (std::size_t r = 0; r < group.members.size(); ++r) {
    const Rank peer{static_cast<std::int32_t>(r)};
    if (peer == me || !is_alone(group, group.members[r])) continue;
    auto candidates = candidates_for(mine, group.members[r], force_network);
    if (!candidates.empty()) reunions.emplace_back(group, me, peer, std::move(candidates));
  }
  if (reunions.empty()) return found;
  ANYCCL_TRY(const bootstrap::Secret name, group.secret.derive("reunion"));
  fabric::ContextKey key = 0;
  std::memcpy(&key, name.bytes().data(), sizeof key);
  ANYCCL_CHECK(meet_all(reunions, std::make_shared<fabric::Context>(me, key), deadline));
  for (const Reunion& one : reunions)
    if (const UsableLink* const known = one.result())
      found.push_back({one.peer(), known->link, known->local, false});
  return found;
}

}  // namespace anyccl
