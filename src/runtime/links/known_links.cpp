#include "runtime/links/known_links.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "base/error.hpp"
#include "base/per_process.hpp"

namespace anyccl {
namespace {

using ProcessName = std::array<std::byte, 16>;  // as in Hello

struct KnownLink {
  LinkIdentity identity;
  std::weak_ptr<link::Link> link;
  bool local = false;
};

/// All that this process has, by the process at the other end.
class KnownLinks {
 public:
  void add(const ProcessName& peer, KnownLink link) {
    const std::lock_guard lock(mutex_);
    for (auto& [process, known] : links_)
      std::erase_if(known, [](const KnownLink& one) { return one.link.expired(); });
    std::erase_if(links_, [](const auto& known) { return known.second.empty(); });
    links_[peer].push_back(std::move(link));
  }
  /// Returns the links to the process, also those that have ended since.
  std::vector<KnownLink> links_to(const ProcessName& peer) {
    const std::lock_guard lock(mutex_);
    const auto found = links_.find(peer);
    return found == links_.end() ? std::vector<KnownLink>() : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<ProcessName, std::vector<KnownLink>> links_;
};

struct UsableLink {
  std::shared_ptr<link::Link> link;
  std::array<std::byte, 32> session{};
  bool local = false;
};

/// In an order that is the same at the other end.
std::vector<UsableLink> usable_links(const bootstrap::Hello& mine, const bootstrap::Hello& peer,
                                     bool force_network, bool encrypts) {
  const bool near = bootstrap::same_host(mine, peer) && !force_network;
  std::vector<UsableLink> all;
  for (const KnownLink& known : per_process<KnownLinks>().links_to(peer.process))
    if (auto link = known.link.lock(); link != nullptr &&
                                       (known.local ? near : link->is_encrypted() == encrypts) &&
                                       link->is_alive())
      all.push_back({std::move(link), known.identity.session, known.local});
  std::sort(all.begin(), all.end(), [](const UsableLink& a, const UsableLink& b) {
    return a.local != b.local ? a.local : a.session < b.session;
  });
  return all;
}

/// Whether `member` is the only rank of its process.
bool is_alone(const bootstrap::Group& group, const bootstrap::Hello& member) {
  return std::count_if(group.members.begin(), group.members.end(), [&](const auto& other) {
           return bootstrap::same_process(member, other);
         }) == 1;
}

}  // namespace

/// This rank and one other member.
class LinksOfGroup::Reunion {
 public:
  Reunion(const bootstrap::Group& group, std::shared_ptr<link::Context> context, Rank peer,
          bool force_network, bool encrypts)
      : group_(group),
        context_(std::move(context)),
        peer_(peer),
        force_network_(force_network),
        encrypts_(encrypts),
        leads_(peer < context_->me) {
    if (leads_) links_ = known();
  }

  /// The link may be closed by who else uses it until then.
  ~Reunion() {
    if (channel_ != nullptr) channel_->say_goodbye();
  }

  bool is_proved() const { return result_.link != nullptr; }
  bool tries() const { return channel_ != nullptr || (leads_ && next_ < links_.size()); }
  PeerLink result() const { return {peer_, result_.link, result_.local, false}; }

  void append_wanted(std::vector<pollfd>& entries) const {
    if (is_proved() || (leads_ && channel_ == nullptr)) return;
    if (leads_) return entries.push_back(channel_->poll_entry());
    for (const UsableLink& one : links_) entries.push_back({one.link->fd(), POLLIN, 0});
  }

  Status advance() {
    if (is_proved()) return {};
    return leads_ ? lead() : follow();
  }

 private:
  /// Sends a proof over one link after the other, until the answer to one is right.
  Status lead() {
    if (channel_ == nullptr) return next_ < links_.size() ? greet() : Status();
    const bool gone = channel_->is_gone();
    link::Notice notice;
    if (channel_->next_notice(notice)) {
      ANYCCL_TRY(const bool right, is_proof(notice, links_[next_ - 1]));
      if (right)
        result_ = links_[next_ - 1];
      else
        close_tried_link();
    } else if (gone) {
      close_tried_link();
    }
    return {};
  }
  /// Opens a channel over the next link to be tried, and sends a proof over it.
  Status greet() {
    const UsableLink& link = links_[next_++];
    auto channel = link.link->open(context_, peer_);
    if (!channel.ok()) return {};
    channel_ = std::move(*channel);
    return send_proof(link);
  }
  /// Answers the first right proof.
  Status follow() {
    links_ = known();
    for (const UsableLink& link : links_) {
      if (!link.link->has_context(context_->key)) continue;
      auto channel = link.link->open(context_, peer_);
      if (!channel.ok()) continue;
      channel_ = std::move(*channel);
      link::Notice notice;
      if (channel_->next_notice(notice)) {
        ANYCCL_TRY(const bool right, is_proof(notice, link));
        if (right) {
          ANYCCL_CHECK(send_proof(link));
          result_ = link;
        }
      }
      if (is_proved()) break;
      close_tried_link();
    }
    return {};
  }

  void close_tried_link() {
    channel_->say_goodbye();
    channel_.reset();
  }
  /// Returns the links to the peer that this process has now and may use.
  std::vector<UsableLink> known() const {
    return usable_links(group_.members[uindex(context_->me)], group_.members[uindex(peer_)],
                        force_network_, encrypts_);
  }
  Status send_proof(const UsableLink& link) {
    ANYCCL_TRY(const bootstrap::Mac proof, proof_of(context_->me, peer_, link));
    return channel_->send_notice(proof, {});
  }
  Result<bool> is_proof(const link::Notice& notice, const UsableLink& link) const {
    ANYCCL_TRY(const bootstrap::Mac expected, proof_of(peer_, context_->me, link));
    bootstrap::Mac claimed{};
    if (notice.payload.size() != claimed.size()) return false;
    std::memcpy(claimed.data(), notice.payload.data(), claimed.size());
    return bootstrap::same_mac(claimed, expected);
  }
  Result<bootstrap::Mac> proof_of(Rank from, Rank to, const UsableLink& link) const {
    const std::array<std::int32_t, 2> ranks{index(from), index(to)};
    return bootstrap::hmac(group_.secret.bytes(), "anyccl meets again",
                           {link.session, std::as_bytes(std::span(ranks))});
  }

  const bootstrap::Group& group_;
  const std::shared_ptr<link::Context> context_;
  const Rank peer_;
  const bool force_network_, encrypts_, leads_;
  std::vector<UsableLink> links_;  // to be tried, or, if this rank does not lead, seen last
  std::size_t next_ = 0;
  std::unique_ptr<link::Channel> channel_;
  UsableLink result_;
};

std::vector<std::shared_ptr<void>> remember_links(const std::vector<bootstrap::Hello>& members,
                                                  const std::vector<PeerLink>& links,
                                                  const std::vector<LinkIdentity>& identities) {
  std::vector<std::shared_ptr<void>> claims;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links[i].same_process) continue;
    claims.push_back(links[i].link->claim());
    per_process<KnownLinks>().add(members[uindex(links[i].rank)].process,
                                  {identities[i], links[i].link, links[i].local});
  }
  return claims;
}

Result<std::unique_ptr<LinksOfGroup>> LinksOfGroup::find(const bootstrap::Group& group, Rank me,
                                                         bool force_network,
                                                         const std::vector<bool>& later,
                                                         bool encrypts) {
  std::unique_ptr<LinksOfGroup> links(new LinksOfGroup);
  links->reunions_.resize(group.members.size());
  if (!is_alone(group, group.members[uindex(me)])) return links;
  ANYCCL_TRY(const bootstrap::Secret name, group.secret.derive("reunion"));
  link::ContextKey key = 0;
  std::memcpy(&key, name.bytes().data(), sizeof key);
  const auto context = std::make_shared<link::Context>(me, key);
  for (std::size_t r = 0; r < group.members.size(); ++r) {
    const Rank peer{static_cast<std::int32_t>(r)};
    const bool left_out = !later.empty() && later[r];
    if (peer != me && !left_out && is_alone(group, group.members[r]))
      links->reunions_[r] =
          std::make_unique<Reunion>(group, context, peer, force_network, encrypts);
  }
  return links;
}

LinksOfGroup::~LinksOfGroup() = default;

Status LinksOfGroup::advance() {
  for (auto& reunion : reunions_)
    if (reunion != nullptr) ANYCCL_CHECK(reunion->advance());
  return {};
}

bool LinksOfGroup::has(Rank peer) const {
  const auto& reunion = reunions_[uindex(peer)];
  return reunion != nullptr && reunion->is_proved();
}

bool LinksOfGroup::tries(Rank peer) const {
  const auto& reunion = reunions_[uindex(peer)];
  return reunion != nullptr && !reunion->is_proved() && reunion->tries();
}

void LinksOfGroup::append_wanted(std::vector<pollfd>& entries) const {
  for (const auto& reunion : reunions_)
    if (reunion != nullptr) reunion->append_wanted(entries);
}

std::vector<PeerLink> LinksOfGroup::found() const {
  std::vector<PeerLink> all;
  for (const auto& reunion : reunions_)
    if (reunion != nullptr && reunion->is_proved()) all.push_back(reunion->result());
  return all;
}

}  // namespace anyccl
