// The C interface: communicators that are made of another one.

#include <optional>

#include "base/error.hpp"
#include "c/creation.hpp"
#include "framework/communicator/call_sequence.hpp"
#include "framework/communicator/survivors.hpp"
#include "runtime/members/agreement.hpp"

namespace anyccl {
namespace {

/// Makes a communicator from `comm` by make(parent, name, settings): at once, in the background, or
/// at the end of the group. `problem`: of this rank's arguments; make() tells it to the others.
/// `when_aborted`: as in Background::start().
template <typename Make>
Status derive(anycclComm_t comm, anycclComm_t* newcomm, const anycclConfig_t* config,
              Status problem, const Make& make, std::function<void()> when_aborted = {}) {
  ANYCCL_TRY(const std::shared_ptr<Team> parent, keep(comm));
  ANYCCL_CHECK(check_wait({.comm = &parent->first()}));
  if (problem.ok()) problem = need(newcomm, "newcomm");
  if (newcomm != nullptr) *newcomm = nullptr;
  const auto [own_name, settings, blocking, device] = creation_in(config, std::move(problem), comm);
  const std::string name = own_name.empty() ? comm->name : own_name;
  const auto job = NewDevice::with_queues(
      [=, settings = settings] { return make(parent->first(), name, settings); }, device);
  if (!blocking && newcomm != nullptr) {
    ANYCCL_TRY(const auto sequence, CallSequence::begin_for_job(parent->first()));
    auto background = Background::start(
        [=]() -> Result<CommPtr> {
          sequence->take();
          auto made = job();
          sequence->end();
          return made;
        },
        [when_aborted = std::move(when_aborted), device = device] {
          if (when_aborted) when_aborted();
          device->abandon();
        });
    {
      const std::lock_guard lock(comm->mutex);
      comm->background.made = background;
    }
    return begin(newcomm, name, device, std::move(background));
  }
  const auto place = [=, device = device]() -> Status {
    ANYCCL_TRY(CommPtr made, job());
    if (made != nullptr) *newcomm = make_handle(std::move(made), name, *device);
    return {};
  };
  if (!in_group()) return place();
  add_to_group(comm, place);
  return {};
}

Status check_shrink(const int* excluded, int count, int flags) {
  if (count < 0) return error(Code::invalid_argument, "excludeRanksCount is {}", count);
  if (count > 0) ANYCCL_CHECK(need(excluded, "excludeRanksList"));
  if (flags != ANYCCL_SHRINK_DEFAULT && flags != ANYCCL_SHRINK_ABORT)
    return error(Code::invalid_argument, "shrinkFlags is {} instead of {} or {}", flags,
                 ANYCCL_SHRINK_DEFAULT, ANYCCL_SHRINK_ABORT);
  return {};
}

/// Ends what runs on `comm`, and makes it ready for carry_on().
Result<std::shared_ptr<Agreement>> break_off(anycclComm_t comm) {
  ANYCCL_TRY(const std::shared_ptr<Team> team, keep(comm));
  const Membership& me = team->first().membership();
  team->abort(error(Code::aborted, "{} shrinks the communicator", me.names[uindex(me.rank)]));
  const std::lock_guard lock(comm->mutex);
  // Who aborts it from now on sees the agreement, and stops it.
  if (comm->stage != anycclComm::Stage::used)
    return error(Code::aborted, "the communicator was aborted by another thread");
  if (comm->agreement == nullptr) {
    ANYCCL_TRY(comm->agreement, Agreement::among(team->first(), inheritance_of(team->first())));
  }
  return comm->agreement;
}

Result<std::vector<Rank>> survivors_of(anycclComm& comm) {
  const std::lock_guard lock(comm.mutex);
  std::vector<Rank> left;
  if (comm.agreement != nullptr) left = comm.agreement->survivors();
  if (left.empty())
    return error(
        Code::invalid_usage,
        "no anycclCommShrink with ANYCCL_SHRINK_ABORT has made a communicator of the ranks "
        "that are left");
  return left;
}

}  // namespace

anycclResult_t split_by(anycclComm_t comm, int color, int key, anycclComm_t* newcomm,
                        const anycclConfig_t* config, const Status& problem) noexcept {
  return guarded(comm, [&]() -> Status {
    return derive(comm, newcomm, config, problem,
                  [=](Comm& parent, const std::string& name, const CommSettings& settings) {
                    return split(parent, color, key, kAnyRing, name, settings);
                  });
  });
}

}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclCommSplit(anycclComm_t comm, int color, int key, anycclComm_t* newcomm,
                               anycclConfig_t* config) {
  return split_by(comm, color, key, newcomm, config, {});
}

anycclResult_t anycclCommShrink(anycclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                                anycclComm_t* newcomm, anycclConfig_t* config, int shrinkFlags) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_TRY(const std::shared_ptr<Team> team, keep(comm));
    ANYCCL_CHECK(check_wait({.comm = &team->first()}));
    const Status problem = check_shrink(excludeRanksList, excludeRanksCount, shrinkFlags);
    const bool has_list = excludeRanksList != nullptr && excludeRanksCount > 0;
    const std::vector<int> excluded(excludeRanksList,
                                    excludeRanksList + (has_list ? excludeRanksCount : 0));
    // Whom a rank with such a list should tell is not known.
    ANYCCL_CHECK(members_without(excluded, team->first()).status());
    if (shrinkFlags == ANYCCL_SHRINK_ABORT) {
      ANYCCL_CHECK(problem);  // before anything ends: with another list the call may be repeated
      ANYCCL_TRY(const std::shared_ptr<Agreement> among, break_off(comm));
      return derive(comm, newcomm, config, Status(),
                    [=](Comm& parent, const std::string& name, const CommSettings& settings) {
                      return carry_on(parent, *among, excluded, name, settings);
                    });
    }
    return derive(comm, newcomm, config, problem,
                  [excluded](Comm& parent, const std::string& name, const CommSettings& settings) {
                    return shrink(parent, excluded, name, settings);
                  });
  });
}

anycclResult_t anycclCommCompleted(anycclComm_t comm, uint64_t* here, uint64_t* everywhere) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_TRY(const std::shared_ptr<Team> team, keep(comm));
    if (here != nullptr) *here = Survivors(team->first()).completed();
    if (everywhere != nullptr) *everywhere = Survivors(team->first()).agreed();
    return {};
  });
}

anycclResult_t anycclCommSurvivors(anycclComm_t comm, int* ranks, int* count) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_TRY(const std::shared_ptr<Team> team, keep(comm));
    ANYCCL_CHECK(need(count, "count"));
    ANYCCL_TRY(const std::vector<Rank> left, survivors_of(*comm));
    *count = static_cast<int>(left.size());
    for (std::size_t i = 0; ranks != nullptr && i < left.size(); ++i) ranks[i] = index(left[i]);
    return {};
  });
}

anycclResult_t anycclCommGetUniqueId(anycclComm_t comm, anycclUniqueId* id) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(id, "id"));
    ANYCCL_TRY(*id, make_unique_id());
    return {};
  });
}

anycclResult_t anycclCommGrow(anycclComm_t comm, int nranks, const anycclUniqueId* id, int rank,
                              anycclComm_t* newcomm, anycclConfig_t* config) {
  if (comm == nullptr) {
    const anycclResult_t ready = guarded(nullptr, [&] { return need(id, "id"); });
    return ready != anycclSuccess ? ready
                                  : anycclCommInitRankConfig(newcomm, nranks, *id, rank, config);
  }
  return guarded(comm, [&]() -> Status {
    Status problem;
    if (rank != -1)
      problem =
          error(Code::invalid_argument, "rank is {}: ranks of comm keep theirs and pass -1", rank);
    const std::optional<anycclUniqueId> known = id == nullptr ? std::nullopt : std::optional(*id);
    return derive(
        comm, newcomm, config, problem,
        [=](Comm& parent, const std::string& name, const CommSettings& settings) {
          return grow(parent, nranks, known ? &*known : nullptr, name, settings);
        },
        [known] {
          if (known) drop_unique_id(*known);
        });
  });
}
