// The C interface: groups of calls, and sequences.

#include "framework/stream/group.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/side_by_side.hpp"
#include "c/handle.hpp"
#include "framework/communicator/call_sequence.hpp"

namespace anyccl {
namespace {

struct OpenGroup {
  CallGroup calls;
  struct Jobs {
    const void* owner;
    std::vector<std::function<Status()>> jobs;
  };
  std::vector<Jobs> before;
  std::vector<std::function<Status()>> between, after;
  Status first_error;
};

// Groups belong to the thread that opened them.
thread_local OpenGroup group;
// In the space that is set aside at start, so that asking costs one load.
[[gnu::tls_model("initial-exec")]] thread_local constinit int depth = 0;
// The one of this thread, if depth > 0.
[[gnu::tls_model("initial-exec")]] thread_local constinit OpenGroup* current = nullptr;

/// Runs all of them, also after an error; returns the first error.
Status run_in_turn(const std::vector<std::function<Status()>>& jobs) {
  Status first;
  for (const auto& job : jobs) {
    Status status = job();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

/// Owners side by side: each may wait for the others.
Status run_side_by_side(const std::vector<OpenGroup::Jobs>& all) {
  std::vector<std::function<Status()>> jobs;
  for (const OpenGroup::Jobs& one : all)
    jobs.emplace_back([&one, caller = caller_here()] {
      const CallsFor calls(caller);
      return run_in_turn(one.jobs);
    });
  return anyccl::run_side_by_side(jobs);
}

template <typename Give>
anycclResult_t with_sequence(anycclComm_t comm, const Give& to) noexcept {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    const std::lock_guard lock(comm->mutex);
    if (comm->sequence == nullptr) return error(Code::invalid_usage, "comm is in no sequence");
    to(*comm->sequence);
    return {};
  });
}

}  // namespace

bool in_group() {
  return depth > 0;
}
void add_to_group(anycclComm_t handle, const Call& call, anycclStream_t stream) {
  current->calls.add(handle->comm, call, stream == nullptr ? nullptr : stream->stream);
}
void add_to_group(anycclComm_t handle, const OneSidedCall& call, anycclStream_t stream) {
  current->calls.add(handle->comm, call, stream == nullptr ? nullptr : stream->stream);
}
void add_to_group(const void* owner, std::function<Status()> job) {
  auto& all = current->before;
  auto mine = std::find_if(all.begin(), all.end(),
                           [&](const OpenGroup::Jobs& jobs) { return jobs.owner == owner; });
  if (mine == all.end()) mine = all.insert(all.end(), OpenGroup::Jobs{owner, {}});
  mine->jobs.push_back(std::move(job));
}
void add_between_in_group(std::function<Status()> job) {
  current->between.push_back(std::move(job));
}
void add_after_group(std::function<Status()> job) {
  current->after.push_back(std::move(job));
}
void note_in_group(const Status& status) {
  if (depth > 0 && current->first_error.ok()) current->first_error = status;
}

}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclGroupStart() {
  if (depth++ == 0) current = &group;
  return anycclSuccess;
}

anycclResult_t anycclGroupEnd() {
  return guarded(nullptr, [&]() -> Status {
    if (depth == 0) return error(Code::invalid_usage, "anycclGroupEnd without anycclGroupStart");
    if (--depth > 0) return {};
    OpenGroup& mine = *current;
    CallGroup calls = std::move(mine.calls);
    const auto between = std::exchange(mine.between, {}), after = std::exchange(mine.after, {});
    if (!mine.first_error.ok() || !mine.before.empty()) {
      const auto before = std::exchange(mine.before, {});
      ANYCCL_CHECK(std::exchange(mine.first_error, {}));
      const Status begun = run_side_by_side(before), held = run_in_turn(between);
      ANYCCL_CHECK(begun);
      ANYCCL_CHECK(held);
    }
    Status status = calls.run();
    mine.calls = std::move(calls);  // it is empty: the next one has its room
    if (after.empty()) return status;
    Status last = run_in_turn(after);
    return status.ok() ? last : status;
  });
}

anycclResult_t anycclGroupSimulateEnd(anycclSimInfo_t* info) {
  return guarded(nullptr, [&]() -> Status {
    constexpr anycclSimInfo_t kInitial = ANYCCL_SIM_INFO_INITIALIZER;
    if (depth == 0)
      return error(Code::invalid_usage, "anycclGroupSimulateEnd without anycclGroupStart");
    if (--depth > 0)
      return error(Code::invalid_usage,
                   "anycclGroupSimulateEnd ends a group inside another one: only the outer one can "
                   "be simulated");
    OpenGroup mine = std::exchange(*current, {});
    ANYCCL_CHECK(mine.first_error);
    ANYCCL_CHECK(need(info, "info"));
    if (info->size != kInitial.size || info->magic != kInitial.magic)
      return error(Code::invalid_argument,
                   "info was not set to ANYCCL_SIM_INFO_INITIALIZER, or for another version");
    ANYCCL_TRY(const double microseconds, mine.calls.predict());
    info->estimatedTime = static_cast<float>(microseconds);
    return {};
  });
}

anycclResult_t anycclSequenceBegin(anycclComm_t comm, unsigned int wait_ms) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need_no_group("anycclSequenceBegin"));
    ANYCCL_CHECK(check_wait({.comm = comm->comm.get()}));
    ANYCCL_TRY(auto sequence,
               CallSequence::begin(*comm->comm, Deadline::in(std::chrono::milliseconds(wait_ms))));
    ANYCCL_CHECK(comm->comm->failure());
    if (sequence == nullptr)
      return error(Code::invalid_usage, "this thread is in a sequence of comm already");
    const std::lock_guard lock(comm->mutex);
    comm->sequence = std::move(sequence);
    return {};
  });
}

anycclResult_t anycclSequenceHandOver(anycclComm_t comm) {
  return with_sequence(comm, [](CallSequence& sequence) { sequence.hand_over(); });
}

anycclResult_t anycclSequenceTake(anycclComm_t comm) {
  return with_sequence(comm, [](CallSequence& sequence) { sequence.take(); });
}

anycclResult_t anycclSequenceEnd(anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    std::unique_lock lock(comm->mutex);
    const std::shared_ptr<CallSequence> sequence = std::move(comm->sequence);
    lock.unlock();
    if (sequence == nullptr) return error(Code::invalid_usage, "comm is in no sequence");
    sequence->end();
    return {};
  });
}
