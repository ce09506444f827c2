// The C interface: how the handle of a communicator ends.

#include <mutex>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "c/handle.hpp"
#include "framework/device/issued_device_calls.hpp"
#include "runtime/members/agreement.hpp"

namespace anyccl {
namespace {

/// Handles with calls that did not return in time.
struct LeftOver {
  std::mutex mutex;
  std::vector<std::unique_ptr<anycclComm>> handles;
};
LeftOver& left_over() {
  return per_process<LeftOver>();
}

void keep_left_over(std::unique_ptr<anycclComm> handle) {
  LeftOver& all = left_over();
  {
    const std::lock_guard lock(all.mutex);
    handle->is_left_over.store(true, std::memory_order_relaxed);
    all.handles.push_back(std::move(handle));
  }
  empty_left_over();  // the call may just have returned
}

/// After await_calls(). What it frees ends without the mutex.
void free_comm(anycclComm& handle) {
  std::unique_lock lock(handle.mutex);
  const std::shared_ptr<CallSequence> sequence = std::move(handle.sequence);
  const std::shared_ptr<Agreement> agreement = std::move(handle.agreement);
  const std::shared_ptr<Team> team = std::move(handle.team);
  const CommPtr comm = std::move(handle.comm);
  const std::shared_ptr<DeviceQueues> queues = handle.device.owned;
  handle.device.set_queues(nullptr);
  const std::shared_ptr<DeviceCopies> copies = std::move(handle.copies);
  lock.unlock();
}

/// A call that has come this far returns within milliseconds of a failure, if it has a core.
constexpr auto kCallTime = std::chrono::milliseconds(100);

/// Frees the communicator, and the handle later: another thread may still be in a call. `why`: the
/// error of all calls from now on.
void bury_comm(anycclComm* comm, Status why) {
  {
    const std::lock_guard lock(comm->mutex);
    comm->finalized = false;
    comm->failure = std::move(why);
    comm->stage = anycclComm::Stage::gone;
  }
  const bool is_closed = close_communicator(*comm);
  if (is_closed)
    bury(std::unique_ptr<anycclComm>(comm));
  else
    keep_left_over(std::unique_ptr<anycclComm>(comm));
}

/// Ends the work that a handle has in the background, if any. Aborted: the program has ended the
/// wait for a creation.
Status end_background(anycclComm& handle, bool wait) {
  std::shared_ptr<Background> background;
  bool is_creation = false;
  {
    const std::lock_guard lock(handle.mutex);  // another thread may adopt its result
    background = handle.background.own;
    is_creation = handle.team == nullptr;
  }
  if (background == nullptr) return {};
  if (!wait) return background->abandon(), Status{};
  Result<CommPtr> made = background->wait_for_result(is_creation);
  if (made.status().code() == Code::aborted) return made.status();
  if (!made.ok() || *made == nullptr) return {};
  const std::lock_guard lock(handle.mutex);
  handle.set(*std::move(made));
  return {};
}

/// From now on no call begins. Errors: it has come to its end before.
Status begin_end(anycclComm& handle) {
  using Stage = anycclComm::Stage;
  const std::lock_guard lock(handle.mutex);
  if (handle.stage == Stage::gone) return handle.failure;
  if (handle.stage == Stage::ending)
    return error(Code::invalid_usage, "another thread destroys or aborts the communicator");
  ANYCCL_CHECK(check_wait({.comm = handle.comm.get()}));
  handle.stage = Stage::ending;
  handle.open.store(false, std::memory_order_seq_cst);
  return {};
}

/// Peers that carry on after a failure do without this rank.
void give_up(const Comm& comm) {
  if (!comm.failure().ok()) Agreement::decline(comm, inheritance_of(comm));
}

/// Returns when nothing of the team is open, also on a device, or hardly later than `deadline`; see
/// Team::finish().
Status finish(Team& team, Deadline deadline = {}) {
  const bool is_mine = !team.first().forked();
  if (is_mine) IssuedDeviceCalls::of_process().await_queued(team.first(), deadline);
  Status ended = team.finish(deadline);
  if (is_mine) IssuedDeviceCalls::of_process().await_end(team.first(), deadline);
  return ended;
}

/// An abort by another thread meanwhile ends the wait for what is open.
Status destroy(anycclComm_t comm) {
  ANYCCL_CHECK(begin_end(*comm));
  Status ended = end_background(*comm, true);
  std::unique_lock lock(comm->mutex);
  const std::shared_ptr<Team> team = comm->team;
  const CommPtr kept = comm->comm;
  const bool is_finalized = comm->finalized, is_agreed = comm->agreement != nullptr;
  comm->agreement = nullptr;  // which keeps links that are to be closed
  lock.unlock();
  if (team != nullptr) {
    if (!is_finalized) ended = finish(*team);
    if (!is_agreed) give_up(team->first());
    if (comm->background_progress || kept->membership().verify.later)
      background_progress().forget(*kept);
    background_progress().forget_memory(*kept);  // so that it ends here, and not in that thread
  }
  bury_comm(comm, error(Code::invalid_usage,
                        "the communicator was destroyed: its handle must not be used any more"));
  return ended;
}

/// Another thread may be destroying or aborting it, too: the handle is that one's.
Status abort(anycclComm_t comm) {
  using Stage = anycclComm::Stage;
  ANYCCL_CHECK(check_wait({}));
  const Status why =
      error(Code::aborted, "the communicator was aborted: its handle must not be used any more");
  std::unique_lock lock(comm->mutex);
  if (comm->stage == Stage::gone) return comm->failure;
  const bool is_mine = std::exchange(comm->stage, Stage::ending) == Stage::used;
  if (is_mine) comm->failure = why;
  comm->open.store(false, std::memory_order_seq_cst);
  lock.unlock();
  static_cast<void>(end_background(*comm, false));
  lock.lock();
  const std::shared_ptr<Team> under_way = comm->team;
  const std::shared_ptr<Agreement> agreement = comm->agreement;
  lock.unlock();
  if (under_way != nullptr) {
    abort(*under_way);
    // Copies that are under way end within milliseconds: then the program's buffers are its own.
    IssuedDeviceCalls::of_process().await_end(under_way->first(), Deadline::in(kCallTime));
  }
  if (agreement != nullptr)
    agreement->stop();
  else if (is_mine && under_way != nullptr)
    give_up(under_way->first());
  if (is_mine) bury_comm(comm, why);
  return {};
}

/// `time`: above 0, how long it may take. A handle that does not block gets a thread for it, and
/// in_progress is returned.
Status finalize(anycclComm& handle, std::chrono::milliseconds time) {
  const InCall in_call(&handle);  // also at the end of a group
  ANYCCL_CHECK(need_comm(&handle));
  ANYCCL_CHECK(check_wait({.comm = handle.comm.get()}));
  const Deadline deadline = time.count() > 0 ? Deadline::in(time) : Deadline::never();
  std::unique_lock lock(handle.mutex);
  if (!handle.open.exchange(false, std::memory_order_seq_cst)) {  // another thread was faster
    lock.unlock();
    return need_comm(&handle);
  }
  handle.finalized = true;
  const std::shared_ptr<Team> finished = handle.team;
  if (!handle.blocking)
    handle.background.own = Background::start([finished, deadline]() -> Result<CommPtr> {
      ANYCCL_CHECK(finish(*finished, deadline));
      return CommPtr();
    });
  lock.unlock();
  if (!handle.blocking) return Status(Code::in_progress, "the communicator is being finalized");
  const Status ended = finish(*finished, deadline);
  close_communicator(handle);
  return ended;
}

/// What a forked child has of its parent's stays as it was: threads that are not there may have
/// been changing it at that moment.
bool is_ours(anycclComm_t comm) {
  return comm != nullptr && !comm->is_inherited();
}

anycclResult_t finalize_in_turn(anycclComm_t comm, std::chrono::milliseconds time) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    if (!in_group()) return finalize(*comm, time);
    add_after_group([comm, time] { return finalize(*comm, time); });
    return {};
  });
}

}  // namespace

bool close_communicator(anycclComm& handle) {
  handle.open.store(false, std::memory_order_seq_cst);
  if (!await_calls(handle, Deadline::in(kCallTime))) return false;
  free_comm(handle);
  return true;
}

void empty_left_over() {
  LeftOver& all = left_over();
  std::vector<std::unique_ptr<anycclComm>> empty;
  {
    const std::lock_guard lock(all.mutex);
    for (auto& handle : all.handles)
      if (await_calls(*handle, Deadline::in(std::chrono::seconds(0))))
        empty.push_back(std::move(handle));
    std::erase(all.handles, nullptr);
  }
  for (auto& handle : empty) {
    free_comm(*handle);
    bury(std::move(handle));
  }
}

}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclCommFinalize(anycclComm_t comm) {
  return finalize_in_turn(comm, {});
}

anycclResult_t anycclCommFinalizeFor(anycclComm_t comm, unsigned int timeout_ms) {
  return finalize_in_turn(comm, std::chrono::milliseconds(timeout_ms));
}

anycclResult_t anycclCommDestroy(anycclComm_t comm) {
  return guarded(nullptr, [&] { return is_ours(comm) ? destroy(comm) : Status(); });
}

anycclResult_t anycclCommAbort(anycclComm_t comm) {
  return guarded(nullptr, [&] { return is_ours(comm) ? abort(comm) : Status(); });
}
