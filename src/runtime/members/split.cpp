// Communicators of members of another one: split, shrunk, and grown.

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "framework/communicator/call_sequence.hpp"
#include "framework/communicator/survivors.hpp"
#include "platform/bootstrap/rendezvous/unique_id.hpp"
#include "runtime/members/correspondence.hpp"
#include "runtime/members/exchange.hpp"
#include "runtime/members/members.hpp"

namespace anyccl {
namespace {

/// Until when all ranks must have come; never: until the time limit of `parent`.
Deadline deadline_of(const CommSettings& settings) {
  return settings.creation_limit ? Deadline::in(*settings.creation_limit) : Deadline::never();
}

/// A member that went away has said why to the parent, or is seen there to be gone: soon.
Status wait_for_reason(const Status& found, Comm& parent, const std::vector<Member>& members) {
  std::vector<Rank> ranks;
  for (const Member& member : members) ranks.push_back(member.rank);
  const Deadline grace = Deadline::in(std::chrono::milliseconds(500));
  while (found.code() == Code::remote_error && !grace.passed()) {
    ANYCCL_CHECK(Survivors(parent).absence(ranks));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return found;
}

/// create_over() for some ranks of `parent`. If it fails here, it aborts `parent`, and so fails for
/// all of them: the others wait for this rank, and listen to the parent.
Result<CommPtr> create_within(Comm& parent, const Inheritance& inheritance,
                              const std::vector<Member>& members, InitContext& init,
                              const Part& part, std::size_t most_ring_bytes) {
  Status why;
  try {
    Result<CommPtr> made =
        create_over(init, part.group, part.me, links_within(inheritance, members, parent.rank()),
                    most_ring_bytes);
    if (made.ok()) return made;
    why = wait_for_reason(made.status(), parent, members);
  } catch (const std::bad_alloc&) {
    why = error(Code::system_error, "there is no memory for another communicator");
  }
  parent.abort(error(why.code(), "the split of {} failed: {}",
                     parent.membership().names[uindex(parent.rank())], why.message()));
  return why;
}

/// The communicator of `members`, in this order; this rank is one of them.
Result<CommPtr> form(Comm& parent, const Inheritance& inheritance,
                     const std::vector<Member>& members, const bootstrap::Secret& secret,
                     InitContext& init, std::size_t most_ring_bytes) {
  ANYCCL_TRY(const Part part, part_of(inheritance, members, secret, parent.rank(), init));
  return create_within(parent, inheritance, members, init, part, most_ring_bytes);
}

/// `made` is of no use without the other members.
Status give_up(const CommPtr& made, const Status& why) {
  if (made != nullptr) made->abort(why);
  return why;
}

/// Each rank of `parent` says whether its communicator exists: the new one is used when it does on
/// all of its members.
Result<CommPtr> keep_if_made_on_all(Result<CommPtr> made, Comm& parent,
                                    const std::vector<Member>& members, const Deadline& deadline) {
  Problem outcome;
  outcome.set(made.status());
  const auto outcomes = exchange_with_all(parent, outcome, deadline);
  if (!made.ok()) return made;
  if (!outcomes.ok()) return give_up(*made, outcomes.status());
  for (const Member& member : members) {
    const Status problem = (*outcomes)[uindex(member.rank)].of("split", member.rank);
    if (!problem.ok()) return give_up(*made, problem);
  }
  return made;
}

// --- shrink --------------------------------------------------------------------------------------

/// The answer of the first member to each card.
struct Reply {
  std::array<std::byte, bootstrap::Secret::kBytes> nonce{};  ///< That nobody else has seen.
  Problem problem;
};

/// The first member collects the cards and compares who takes part.
Result<std::vector<Card>> collect_cards(Correspondence& mail, const std::vector<Member>& members,
                                        const Card& mine, Reply& reply) {
  std::vector<Card> cards(members.size());
  cards[0] = mine;
  for (std::size_t i = 1; i < members.size(); ++i) {
    ANYCCL_CHECK(mail.receive(members[i].rank, std::span(&cards[i], 1)));
    const bool all_are_right = cards[i].problem.code == 0 && mine.problem.code == 0;
    if (all_are_right && cards[i].key != mine.key)
      reply.problem.set(error(Code::invalid_usage, "rank {} leaves out other ranks than rank {}",
                              index(members[i].rank), index(members[0].rank)));
  }
  ANYCCL_CHECK(bootstrap::random_bytes(reply.nonce));
  return cards;
}

/// The cards of all members, on each of them. `reply`: the same on all.
Result<std::vector<Card>> share_cards(Comm& parent, const std::vector<Member>& members, Card mine,
                                      const Deadline& deadline, Reply& reply) {
  std::uint64_t all = 0;
  for (const Member& member : members) all = mix(all, uindex(member.rank) + 1);
  mine.key = static_cast<std::int32_t>(all);
  Correspondence mail(parent, deadline);
  const Rank first = members[0].rank;
  std::vector<Card> cards(members.size());
  if (parent.rank() == first) {
    ANYCCL_TRY(cards, collect_cards(mail, members, mine, reply));
  } else {
    ANYCCL_CHECK(mail.send(first, std::span(&mine, 1)));
    ANYCCL_CHECK(mail.receive(first, std::span(&reply, 1)));
  }
  for (std::size_t i = 1; i < members.size() && parent.rank() == first; ++i) {
    ANYCCL_CHECK(mail.send(members[i].rank, std::span(&reply, 1)));
    if (reply.problem.code == 0) ANYCCL_CHECK(mail.send(members[i].rank, std::span(cards)));
  }
  ANYCCL_CHECK(reply.problem.of("shrink", first));
  if (parent.rank() != first) ANYCCL_CHECK(mail.receive(first, std::span(cards)));
  return cards;
}

/// All members have come here.
Status wait_for_members(Correspondence& mail, const std::vector<Member>& members, Rank me) {
  char nothing = 0;
  const Rank first = members[0].rank;
  if (me != first) {
    ANYCCL_CHECK(mail.send(first, std::span(&nothing, 1)));
    return mail.receive(first, std::span(&nothing, 1));
  }
  for (std::size_t i = 1; i < members.size(); ++i)
    ANYCCL_CHECK(mail.receive(members[i].rank, std::span(&nothing, 1)));
  for (std::size_t i = 1; i < members.size(); ++i)
    ANYCCL_CHECK(mail.send(members[i].rank, std::span(&nothing, 1)));
  return {};
}

// --- grow ----------------------------------------------------------------------------------------

/// What a rank of the smaller communicator knows of the larger one.
struct Invitation {
  std::int32_t size = 0, has_id = 0;
  bootstrap::UniqueId id;  ///< Hidden.
  Problem problem;
};

/// Hides the secret of `id` from others who read what ranks send, and shows it again.
void hide(bootstrap::UniqueId& id, const bootstrap::Secret& key) {
  for (std::size_t i = 0; i < id.secret.size(); ++i) id.secret[i] ^= key.bytes()[i];
}

Status invite(const Comm& parent, int size, const anycclUniqueId* id, const CommSettings& settings,
              Invitation& mine) {
  mine.size = size;
  if (size <= parent.size())
    return error(Code::invalid_argument, "nranks {} is not more than the {} ranks of comm", size,
                 parent.size());
  // A reason that would keep this rank from joining later is told while the others listen.
  ANYCCL_CHECK(prepare_init(index(parent.rank()), size, settings).status());
  if (id == nullptr) return {};
  ANYCCL_TRY(mine.id, bootstrap::UniqueId::from_bytes(id->internal));
  mine.has_id = 1;
  return {};
}

Result<bootstrap::UniqueId> common_id(const std::vector<Invitation>& all) {
  const Invitation* invited = nullptr;
  for (std::size_t r = 0; r < all.size(); ++r) {
    ANYCCL_CHECK(all[r].problem.of("grow", Rank{static_cast<std::int32_t>(r)}));
    if (all[r].size != all[0].size)
      return error(Code::invalid_usage, "rank 0 grows to {} ranks, but rank {} to {}", all[0].size,
                   r, all[r].size);
    if (all[r].has_id == 0) continue;
    if (invited != nullptr)
      return error(Code::invalid_usage,
                   "ranks {} and {} both have a unique id: one of them, which made it, passes it",
                   invited - all.data(), r);
    invited = &all[r];
  }
  if (invited == nullptr)
    return error(Code::invalid_usage,
                 "no rank has a unique id: the rank that called anycclCommGetUniqueId passes it");
  return invited->id;
}

}  // namespace

Result<CommPtr> split(Comm& parent, int color, int key, std::size_t most_ring_bytes,
                      const std::string& name, const CommSettings& settings) {
  ANYCCL_TRY(const auto sequence, CallSequence::begin(parent));
  const Deadline deadline = deadline_of(settings);
  Card mine;
  mine.color = color;
  mine.key = key;
  Status problem;
  if (color < 0 && color != ANYCCL_SPLIT_NOCOLOR)
    problem =
        error(Code::invalid_argument, "color {} is negative and not ANYCCL_SPLIT_NOCOLOR", color);
  const Inheritance inheritance = inheritance_of(parent);
  auto init = prepare(parent, inheritance, settings);
  if (problem.ok() && !init.ok()) problem = init.status();
  if (init.ok()) init->name = name;
  if (problem.ok()) mine.settings = init->hello.settings;
  mine.problem.set(problem);

  ANYCCL_TRY(const std::vector<Card> cards, exchange_with_all(parent, mine, deadline));
  ANYCCL_CHECK(problem);
  std::vector<Member> members;
  for (std::size_t r = 0; r < cards.size(); ++r)
    members.push_back({Rank{static_cast<std::int32_t>(r)}, &cards[r]});
  ANYCCL_CHECK(first_problem("split", members));
  // Without a limit of its own it begins when all have called it.
  if (deadline.is_never()) init->deadline = creation_deadline(init->config, settings);
  if (color == ANYCCL_SPLIT_NOCOLOR) return keep_if_made_on_all(CommPtr(), parent, {}, deadline);
  std::erase_if(members, [&](const Member& member) { return member.card->color != color; });
  std::stable_sort(members.begin(), members.end(),
                   [](const Member& a, const Member& b) { return a.card->key < b.card->key; });
  const std::uint64_t context[2] = {parent.sequence(), static_cast<std::uint64_t>(color)};
  ANYCCL_TRY(const bootstrap::Secret secret,
             inheritance.secret.derive("split", std::as_bytes(std::span(context))));
  return keep_if_made_on_all(form(parent, inheritance, members, secret, *init, most_ring_bytes),
                             parent, members, deadline);
}

Result<CommPtr> shrink(Comm& parent, std::span<const int> excluded, const std::string& name,
                       const CommSettings& settings) {
  ANYCCL_TRY(std::vector<Member> members, members_without(excluded, parent));
  ANYCCL_TRY(const auto sequence, CallSequence::begin(parent));
  const Inheritance inheritance = inheritance_of(parent);
  auto init = prepare(parent, inheritance, settings);
  Card mine;
  if (init.ok())
    mine.settings = init->hello.settings;
  else
    mine.problem.set(init.status());
  const Deadline deadline = init.ok() ? init->deadline : Deadline::in(std::chrono::seconds(60));
  Reply reply;
  ANYCCL_TRY(const std::vector<Card> cards, share_cards(parent, members, mine, deadline, reply));
  ANYCCL_CHECK(init.status());
  for (std::size_t i = 0; i < members.size(); ++i) members[i].card = &cards[i];
  ANYCCL_CHECK(first_problem("shrink", members));
  init->name = name;
  ANYCCL_TRY(const bootstrap::Secret secret, inheritance.secret.derive("shrink", reply.nonce));
  auto made = form(parent, inheritance, members, secret, *init, kAnyRing);
  if (made.ok() && members.size() > 1) {
    Correspondence mail(parent, init->deadline);
    if (const Status all = wait_for_members(mail, members, parent.rank()); !all.ok())
      return give_up(*made, all);
  }
  return made;
}

Result<CommPtr> grow(Comm& parent, int size, const anycclUniqueId* id, const std::string& name,
                     const CommSettings& settings) {
  ANYCCL_TRY(const auto sequence, CallSequence::begin(parent));
  const Deadline deadline = deadline_of(settings);
  const std::uint64_t context = parent.sequence();
  ANYCCL_TRY(const bootstrap::Secret key,
             inheritance_of(parent).secret.derive("grow", std::as_bytes(std::span(&context, 1))));
  Invitation mine;
  CommSettings all_settings = inherited(parent.membership().settings, settings);
  const Status problem = invite(parent, size, id, all_settings, mine);
  mine.problem.set(problem);
  if (mine.has_id != 0) hide(mine.id, key);  // nothing would show the key
  ANYCCL_TRY(const std::vector<Invitation> all, exchange_with_all(parent, mine, deadline));
  ANYCCL_CHECK(problem);
  ANYCCL_TRY(bootstrap::UniqueId agreed, common_id(all));
  hide(agreed, key);
  anycclUniqueId whole{};
  agreed.to_bytes(whole.internal);
  if (!deadline.is_never()) all_settings.creation_limit = deadline.operation_limit();
  return join_by_id(whole, size, index(parent.rank()), name, all_settings);
}

}  // namespace anyccl
