// The C interface: how the handle of a communicator ends.

#include <utility>

#include "adapter/agreement.hpp"
#include "adapter/c/handle.hpp"
#include "base/error.hpp"

namespace anyccl {
namespace {

/// Frees the communicator at once, and the handle later: another thread may still be in a call. `why`:
/// the error of all calls from now on.
void bury_comm(anycclComm* comm, Status why) {
  {
    const std::lock_guard lock(comm->mutex);  // a thread whose part failed may look
    comm->set(nullptr);
    comm->finishing = nullptr;
    comm->finalized = false;
    comm->failure = std::move(why);
    comm->stage = anycclComm::Stage::gone;
  }
  bury(std::unique_ptr<anycclComm>(comm));
}

/// Ends the work that a handle has in the background, if any.
void end_background(anycclComm& handle, bool wait) {
  std::shared_ptr<Background> background;
  {
    const std::lock_guard lock(handle.mutex);  // another thread may adopt its result
    background = handle.background;
  }
  if (background == nullptr) return;
  if (!wait) return background->abandon();
  Result<CommPtr> made = background->take();
  if (!made.ok()) return;
  const std::lock_guard lock(handle.mutex);
  handle.set(*std::move(made));
}

/// An abort by another thread meanwhile ends the wait for what is open.
Status destroy(anycclComm_t comm) {
  using Stage = anycclComm::Stage;
  {
    const std::lock_guard lock(comm->mutex);
    if (comm->stage == Stage::gone) return comm->failure;
    if (comm->stage == Stage::ending)
      return error(Code::invalid_usage, "another thread destroys or aborts the communicator");
    ANYCCL_CHECK(check_wait({.comm = comm->comm.get()}));
    comm->stage = Stage::ending;
  }
  end_background(*comm, true);
  std::unique_lock lock(comm->mutex);
  const std::shared_ptr<Team> team = comm->team;
  const CommPtr kept = comm->comm;
  comm->agreement = nullptr;  // which keeps links that are to be closed
  lock.unlock();
  if (team != nullptr) {
    static_cast<void>(team->finish());  // without a deadline nothing is late
    if (comm->background_progress) background_progress().forget(*kept);
    background_progress().forget_memory(*kept);  // so that it ends here, and not in that thread
  }
  bury_comm(comm, error(Code::invalid_usage,
                        "the communicator was destroyed: its handle must not be used any more"));
  return {};
}

/// Another thread may be destroying or aborting it, too: the handle is that one's.
Status abort(anycclComm_t comm) {
  using Stage = anycclComm::Stage;
  ANYCCL_CHECK(check_wait({}));
  std::unique_lock lock(comm->mutex);
  if (comm->stage == Stage::gone) return comm->failure;
  const bool is_mine = std::exchange(comm->stage, Stage::ending) == Stage::used;
  lock.unlock();
  end_background(*comm, false);
  lock.lock();
  const std::shared_ptr<Team> under_way[] = {comm->team, comm->finishing};
  const std::shared_ptr<Agreement> agreement = comm->agreement;
  lock.unlock();
  for (const std::shared_ptr<Team>& one : under_way)
    if (one != nullptr) abort(*one);
  if (agreement != nullptr) agreement->stop();
  if (is_mine)
    bury_comm(comm, error(Code::aborted,
                          "the communicator was aborted: its handle must not be used any more"));
  return {};
}

/// `time`: above 0, how long it may take.
Status finalize(anycclComm& handle, std::chrono::milliseconds time) {
  ANYCCL_CHECK(check_wait({.comm = handle.comm.get()}));
  const Deadline deadline = time.count() > 0 ? Deadline::in(time) : Deadline::never();
  std::shared_ptr<Team> finished;
  {
    const std::lock_guard lock(handle.mutex);
    finished = handle.team;
    handle.set(nullptr);
    handle.finalized = true;
    handle.finishing = finished;
    if (!handle.blocking)
      handle.background = Background::start([finished, deadline]() -> Result<CommPtr> {
        ANYCCL_CHECK(finished->finish(deadline));
        return CommPtr();
      });
  }
  if (!handle.blocking) return Status(Code::in_progress, "the communicator is being finalized");
  return finished->finish(deadline);
}

anycclResult_t finalize_in_turn(anycclComm_t comm, std::chrono::milliseconds time) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    if (!in_group()) return finalize(*comm, time);
    add_after_group([comm, time]() -> Status {
      ANYCCL_CHECK(need_comm(comm));  // which the group may have ended meanwhile
      return finalize(*comm, time);
    });
    return {};
  });
}

}  // namespace
}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclCommFinalize(anycclComm_t comm) {
  return finalize_in_turn(comm, {});
}

anycclResult_t anycclCommFinalizeFor(anycclComm_t comm, unsigned int timeout_ms) {
  return finalize_in_turn(comm, std::chrono::milliseconds(timeout_ms));
}

anycclResult_t anycclCommDestroy(anycclComm_t comm) {
  return guarded(nullptr, [&] { return comm == nullptr ? Status() : destroy(comm); });
}

anycclResult_t anycclCommAbort(anycclComm_t comm) {
  return guarded(nullptr, [&] { return comm == nullptr ? Status() : abort(comm); });
}
