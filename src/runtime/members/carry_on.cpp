// Ranks that are left of a communicator that has failed make another one.

#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "framework/communicator/survivors.hpp"
#include "runtime/members/agreement.hpp"

namespace anyccl {
namespace {

/// A rank that cannot take part, and does not know ANYCCL_TIMEOUT, gets so long to say so: the
/// others are to hear of it.
constexpr auto kTimeToSaySo = std::chrono::seconds(60);
/// What ranks that have agreed at the end of their limits still get to connect, and to say so.
constexpr auto kTimeToForm = std::chrono::seconds(1);

/// Its secret is another one for each decision: nothing that comes late for one communicator
/// reaches another.
Result<CommPtr> form(Comm& parent, const Inheritance& inheritance,
                     const Agreement::Decision& decision, const Card& card, InitContext& init) {
  std::vector<Member> members;
  for (std::size_t r = 0; r < decision.gone.size(); ++r)
    if (!decision.gone[r]) members.push_back({Rank{static_cast<std::int32_t>(r)}, &card});
  ANYCCL_TRY(const bootstrap::Secret secret,
             inheritance.secret.derive("carry on", std::as_bytes(std::span(&decision.round, 1))));
  ANYCCL_TRY(const Part part, part_of(inheritance, members, secret, parent.rank(), init));
  return create_over(init, part.group, part.me, links_within(inheritance, members, parent.rank()));
}

Result<CommPtr> form_if_there_is_memory(Comm& parent, const Inheritance& inheritance,
                                        const Agreement::Decision& decision, const Card& card,
                                        InitContext& init) try {
  return form(parent, inheritance, decision, card, init);
} catch (const std::bad_alloc&) {
  return error(Code::system_error, "there is no memory for another communicator");
}

void abort_made(const CommPtr& made) {
  if (made != nullptr)
    made->abort(error(Code::aborted, "ranks are left out that were to be in it"));
}

}  // namespace

Result<CommPtr> carry_on(Comm& parent, Agreement& among, std::span<const int> excluded,
                         const std::string& name, const CommSettings& settings) {
  const std::unique_lock busy(among.busy, std::try_to_lock);
  if (!busy.owns_lock())
    return error(Code::invalid_usage, "another thread shrinks the communicator");
  for (const int rank : excluded) among.leave_out(Rank{rank});
  const Inheritance inheritance = inheritance_of(parent);
  auto init = prepare(parent, inheritance, settings);
  Card card;
  Agreement::Ballot ballot{.completed = Survivors(parent).completed(), .problem = init.status()};
  if (init.ok()) {
    init->name = name;
    card.settings = init->hello.settings;
    ballot.settings = hash_of({card.settings.data(), card.settings.size()});
  }
  Deadline deadline = init.ok() ? init->deadline : Deadline::in(kTimeToSaySo);
  CommPtr made = std::move(among.kept);
  ballot.formed = made != nullptr;
  for (;;) {
    const auto decision = among.decide(ballot, deadline);
    if (decision.status().code() == Code::timeout && made != nullptr)
      return among.kept = std::move(made), decision.status();
    Status bad = !ballot.problem.ok() ? ballot.problem : decision.status();
    if (bad.ok()) bad = decision->problem;
    if (!bad.ok()) return abort_made(made), bad;
    Survivors(parent).note_agreed(decision->completed);
    if (decision->formed) return among.note_survivors(*decision), made;
    abort_made(made);
    init->deadline = deadline = std::max(deadline, Deadline::in(kTimeToForm));
    auto formed = form_if_there_is_memory(parent, inheritance, *decision, card, *init);
    ballot.formed = formed.ok();
    made = formed.ok() ? *std::move(formed) : nullptr;
    // A member that went away meanwhile is no problem of this rank: the next decision is without
    // it.
    if (formed.status().code() != Code::remote_error) ballot.problem = formed.status();
  }
}

}  // namespace anyccl
