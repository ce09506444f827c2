#include "runtime/members/agreement.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.hpp"
#include "framework/communicator/survivors.hpp"

namespace anyccl {
namespace {

constexpr auto kLooks = std::chrono::milliseconds(100);
/// Another thread may read what comes, and this one would not wake up.
constexpr int kNap = 1;  // ms
/// Where all have come, what is missing takes messages, not programs: it gets more than the limit.
constexpr auto kTimeToAgree = std::chrono::seconds(1);

std::size_t bytes_for(std::size_t ranks) {
  return (ranks + 7) / 8;
}

}  // namespace

/// What has been heard of another rank.
struct Agreement::Peer {
  std::unique_ptr<link::Channel> channel;                 // null: its link has ended before
  bool is_over = false;                                   // Nothing more will come.
  std::map<std::uint32_t, Statement> ballots, decisions;  // By round, the newest of each.

  bool has_decided(std::uint32_t round) const { return decisions.contains(round); }
  bool has_spoken(std::uint32_t round) const {
    return ballots.contains(round) || has_decided(round);
  }
};

Agreement::Agreement(Comm& parent, std::shared_ptr<link::Context> context)
    : parent_(parent.weak_from_this()),
      me_(parent.rank()),
      names_(parent.membership().names),
      context_(std::move(context)),
      peers_(static_cast<std::size_t>(parent.size())),
      gone_(peers_.size()) {}

Agreement::~Agreement() = default;

void Agreement::decline(const Comm& parent, const Inheritance& inheritance) {
  const auto key = context_key_of(inheritance.secret, "agreement");
  if (!key.ok()) return;  // they hear of it when the links end
  const auto context = std::make_shared<link::Context>(parent.rank(), *key);
  for (const PeerLink& peer : inheritance.links)
    if (peer.link->connector() == nullptr || peer.link->is_attached())
      static_cast<void>(peer.link->open(context, peer.rank));  // the end of a channel says so
}

Result<std::shared_ptr<Agreement>> Agreement::among(Comm& parent, const Inheritance& inheritance) {
  constexpr std::size_t kMost = (link::kMaxControl - sizeof(Statement::Fixed)) * 8;
  if (static_cast<std::size_t>(parent.size()) > kMost)
    return error(Code::unsupported, "more than {} ranks cannot agree who of them is left", kMost);
  ANYCCL_TRY(const link::ContextKey key, context_key_of(inheritance.secret, "agreement"));
  std::shared_ptr<Agreement> made(
      new Agreement(parent, std::make_shared<link::Context>(parent.rank(), key)));
  for (const PeerLink& link : inheritance.links) {
    auto peer = std::make_unique<Peer>();
    if (auto channel = link.link->open(made->context_, link.rank); channel.ok())
      peer->channel = *std::move(channel);  // of a link that has ended, too, if the peer has spoken
    peer->is_over = peer->channel == nullptr;
    made->gone_[uindex(link.rank)] = peer->is_over;
    made->peers_[uindex(link.rank)] = std::move(peer);
  }
  return made;
}

Result<Agreement::Decision> Agreement::decide(const Ballot& mine, Deadline deadline) {
  begin(mine);
  auto last = deadline.passed() ? std::optional(deadline) : std::nullopt;
  for (;;) {
    listen();
    if (gone_[uindex(me_)])
      return error(Code::remote_error,
                   "{} does without this rank: it was left out, or taken for dead",
                   names_[uindex(refused_by_.value_or(me_))]);
    if (const auto decision = find_decision()) return adopt(*decision);
    if (index(leader()) != mine_.fixed.follows) {
      follow(leader());
      continue;
    }
    if (stopped_.load(std::memory_order_relaxed))
      return error(Code::aborted, "the communicator was aborted by another thread");
    if (deadline.passed()) ANYCCL_CHECK(allow_more(last));
    wait();
  }
}

void Agreement::begin(const Ballot& mine) {
  if (std::exchange(is_decided_, false)) ++mine_.fixed.round;
  mine_.fixed.formed = mine.formed ? 1 : 0;
  mine_.fixed.completed = mine.completed;
  mine_.fixed.settings = mine.settings;
  mine_.fixed.rank = index(me_);
  mine_.fixed.problem = {};
  mine_.fixed.problem.set(mine.problem);
  follow(leader());
}

Rank Agreement::leader() const {
  const auto first = std::find(gone_.begin(), gone_.end(), false);
  return Rank{static_cast<std::int32_t>(first - gone_.begin())};
}

/// Tells all others whom this rank follows: from now on no decision of a lower rank is taken.
void Agreement::follow(Rank leader) {
  mine_.fixed.follows = index(leader);
  mine_.gone = gone_;
  send_to_all(mine_);
}

void Agreement::send_to_all(const Statement& statement) {
  std::vector<std::byte> payload(sizeof statement.fixed + bytes_for(gone_.size()));
  std::memcpy(payload.data(), &statement.fixed, sizeof statement.fixed);
  for (std::size_t r = 0; r < gone_.size(); ++r)
    if (statement.gone[r])
      payload[sizeof statement.fixed + r / 8] |= std::byte{1} << static_cast<int>(r % 8);
  for (const auto& peer : peers_)
    if (peer != nullptr && !peer->is_over)
      static_cast<void>(peer->channel->send_notice(payload, {}));  // fails for descriptors only
}

void Agreement::note_survivors(const Decision& decision) {
  std::vector<Rank> left;
  for (std::size_t r = 0; r < decision.gone.size(); ++r)
    if (!decision.gone[r]) left.push_back(Rank{static_cast<std::int32_t>(r)});
  const std::lock_guard lock(mutex_);
  survivors_ = std::move(left);
}

std::vector<Rank> Agreement::survivors() const {
  const std::lock_guard lock(mutex_);
  return survivors_;
}

// --- listening -----------------------------------------------------------------------------------

void Agreement::listen() {
  const auto now = std::chrono::steady_clock::now();
  const bool looks = now >= next_look_;
  if (looks) next_look_ = now + kLooks;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (peers_[r] == nullptr || peers_[r]->is_over) continue;
    Peer& peer = *peers_[r];
    if (looks) peer.channel->look_for_silence();
    peer.is_over = peer.channel->is_gone();  // what it said before that is heard now
    link::Notice notice;
    while (peer.channel->next_notice(notice)) take_statement(peer, notice.payload);
    // One that has decided needs to say no more.
    if (peer.is_over && !peer.has_decided(mine_.fixed.round)) gone_[r] = true;
  }
  if (looks) look_for_leavers();
}

/// Ranks that had taken leave of the communicator before they knew of its failure. Their links may
/// stay, for other communicators.
void Agreement::look_for_leavers() {
  const std::shared_ptr<Comm> parent = parent_.lock();
  if (parent == nullptr) return;
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (peers_[r] != nullptr && !gone_[r] && !peers_[r]->has_decided(mine_.fixed.round))
      gone_[r] = Survivors(*parent).has_left(Rank{static_cast<std::int32_t>(r)});
}

void Agreement::take_statement(Peer& peer, std::span<const std::byte> payload) {
  Statement said;
  if (payload.size() != sizeof said.fixed + bytes_for(gone_.size())) return;
  std::memcpy(&said.fixed, payload.data(), sizeof said.fixed);
  said.gone.resize(gone_.size());
  const Rank from = peer.channel->peer();
  for (std::size_t r = 0; r < gone_.size(); ++r) {
    const std::byte bits = payload[sizeof said.fixed + r / 8];
    said.gone[r] = (bits >> static_cast<int>(r % 8) & std::byte{1}) != std::byte{0};
  }
  const std::uint32_t round = said.fixed.round;
  if (round > mine_.fixed.round + 1) return;  // nobody decides without this rank
  if (round == mine_.fixed.round && said.is_decision() && index(from) == mine_.fixed.follows &&
      !taken_)
    taken_ = said;
  for (std::size_t r = 0; r < gone_.size(); ++r)
    if (said.gone[r]) gone_[r] = true;
  if (gone_[uindex(me_)] && !refused_by_) refused_by_ = from;
  auto& known = said.is_decision() ? peer.decisions : peer.ballots;
  known.insert_or_assign(round, std::move(said));
  while (!known.empty() && known.begin()->first < mine_.fixed.round) known.erase(known.begin());
}

// --- deciding ------------------------------------------------------------------------------------

std::optional<Agreement::Statement> Agreement::find_decision() {
  if (taken_) return taken_;
  const Rank who = leader();
  if (who == me_) return lead();
  const Peer& peer = *peers_[uindex(who)];
  const auto found = peer.decisions.find(mine_.fixed.round);
  return found == peer.decisions.end() ? std::nullopt : std::optional(found->second);
}

/// Returns the decision that another rank has taken already, or makes one once all that are left
/// follow this rank; until then returns nothing.
std::optional<Agreement::Statement> Agreement::lead() {
  bool is_complete = mine_.fixed.follows == index(me_);
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (gone_[r] || peers_[r] == nullptr) continue;
    Peer& peer = *peers_[r];
    if (const auto found = peer.decisions.find(mine_.fixed.round); found != peer.decisions.end())
      return found->second;
    const auto ballot = peer.ballots.find(mine_.fixed.round);
    const bool follows = ballot != peer.ballots.end() && ballot->second.fixed.follows == index(me_);
    is_complete = is_complete && follows;
    if (!follows) peer.channel->link().use();
  }
  return is_complete ? std::optional(decision_of_all()) : std::nullopt;
}

Agreement::Statement Agreement::decision_of_all() const {
  Statement all = mine_;
  all.gone = gone_;
  if (gone_ != gone_before_) all.fixed.formed = 0;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (gone_[r] || peers_[r] == nullptr) continue;
    const Statement::Fixed& one = peers_[r]->ballots.at(mine_.fixed.round).fixed;
    all.fixed.formed &= one.formed;
    all.fixed.completed = std::min(all.fixed.completed, one.completed);
    if (all.fixed.problem.code != 0) continue;
    all.fixed.problem = one.problem;
    all.fixed.rank = static_cast<std::int32_t>(r);
    if (one.problem.code == 0 && one.settings != mine_.fixed.settings)
      all.fixed.problem.set(
          error(Code::invalid_usage, "its settings differ from those of {}", names_[uindex(me_)]));
  }
  all.fixed.follows = kDecided;
  return all;
}

Agreement::Decision Agreement::adopt(const Statement& decision) {
  send_to_all(decision);
  taken_ = std::nullopt;
  is_decided_ = true;
  gone_before_ = decision.gone;
  return {.round = decision.fixed.round,
          .gone = decision.gone,
          .formed = decision.fixed.formed != 0,
          .completed = decision.fixed.completed,
          .problem = decision.fixed.problem.of("shrink", Rank{decision.fixed.rank})};
}

// --- waiting -------------------------------------------------------------------------------------

/// Ok if a call may go on after its limit; else a timeout. `last`: until when it goes on where all
/// have come.
Status Agreement::allow_more(std::optional<Deadline>& last) const {
  if (const std::string absent = absentees(); !absent.empty())
    return error(Code::timeout,
                 "shrink: in time nothing has come of {}; leave out ranks that will not come",
                 absent);
  if (!last) last = Deadline::in(kTimeToAgree);
  if (!last->passed()) return {};
  return error(Code::timeout,
               "shrink: all ranks that are left have come, but {} has not decided in time who they "
               "are; make the call again",
               names_[uindex(leader())]);
}

std::string Agreement::absentees() const {
  std::string names;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (gone_[r] || peers_[r] == nullptr || peers_[r]->has_spoken(mine_.fixed.round)) continue;
    names += (names.empty() ? "" : ", ") + names_[r];
  }
  return names;
}

void Agreement::wait() {
  std::vector<pollfd> entries;
  for (const auto& peer : peers_)
    if (peer != nullptr && !peer->is_over) entries.push_back(peer->channel->poll_entry());
  if (const auto& peer = peers_[uindex(leader())]; peer != nullptr && peer->channel != nullptr)
    peer->channel->link().use();
  ::poll(entries.data(), entries.size(), kNap);
}

}  // namespace anyccl
