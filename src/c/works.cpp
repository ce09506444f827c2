// The C interface: works, waiting for several of them, and how a program ends a wait.

#include <vector>

#include "anyccl/interrupt.h"
#include "base/error.hpp"
#include "c/handle.hpp"
#include "framework/waiting/interrupt.hpp"

namespace anyccl {
namespace {

/// The works that are not NULL, and where they are among all.
struct SomeWorks {
  std::vector<PendingOperation> pending;
  std::vector<std::size_t> places;

  Status add(const anycclWork_t* works, std::size_t count) {
    if (count > 0) ANYCCL_CHECK(need(works, "works"));
    for (std::size_t i = 0; i < count; ++i) {
      if (works[i] == nullptr) continue;
      pending.push_back({works[i]->comm, works[i]->operation});
      places.push_back(i);
    }
    return {};
  }
};

/// One of them that can be waited for is enough; with a deadline, none.
Status check_wait_any(const std::vector<PendingOperation>& pending, Deadline deadline) {
  ANYCCL_CHECK(check_wait({}));
  Status status;
  for (const PendingOperation& one : pending)
    if (status = check_wait({.operation = one.operation.get()}); status.ok()) return {};
  return deadline.is_never() ? status : Status();
}

anycclResult_t wait_any_for(const anycclWork_t* works, size_t count, Deadline deadline,
                            size_t* place) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(place, "index"));
    *place = count;
    SomeWorks some;
    ANYCCL_CHECK(some.add(works, count));
    if (some.pending.empty()) return {};
    ANYCCL_CHECK(check_wait_any(some.pending, deadline));
    const std::size_t first = wait_any(some.pending, deadline);
    if (first == some.pending.size())
      return Status(Code::in_progress, "none of the operations is complete yet");
    *place = some.places[first];
    return some.pending[first].status();
  });
}

}  // namespace

Result<anycclWork_t> make_work(const CommPtr& comm, std::shared_ptr<Operation> operation,
                               Collective collective) {
  if (!operation->done()) ANYCCL_CHECK(background_progress().add(comm));
  return new anycclWork{comm, std::move(operation), collective};
}

}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclWorkTest(anycclWork_t work, int* done) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(work, "work"));
    ANYCCL_CHECK(need(done, "done"));
    *done = 1;
    if (work->comm->test(*work->operation)) return work->operation->status();
    const PendingOperation pending{work->comm, work->operation};
    if (pending.is_over()) return pending.status();  // it may be done meanwhile
    *done = 0;
    return {};
  });
}

anycclResult_t anycclWorkWait(anycclWork_t work) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(work, "work"));
    ANYCCL_CHECK(check_wait({.operation = work->operation.get()}));
    return work->comm->wait(*work->operation);
  });
}

anycclResult_t anycclWorkWaitFor(anycclWork_t work, unsigned int timeout_ms) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(work, "work"));
    ANYCCL_CHECK(check_wait({}));
    return work->comm->wait(*work->operation, Deadline::in(std::chrono::milliseconds(timeout_ms)));
  });
}

anycclResult_t anycclWorkWaitAll(const anycclWork_t* works, size_t count) {
  return guarded(nullptr, [&]() -> Status {
    SomeWorks some;
    ANYCCL_CHECK(some.add(works, count));
    for (const PendingOperation& one : some.pending)
      ANYCCL_CHECK(check_wait({.operation = one.operation.get()}));
    return wait_all(some.pending);
  });
}

anycclResult_t anycclWorkWaitAny(const anycclWork_t* works, size_t count, size_t* place) {
  return wait_any_for(works, count, {}, place);
}

anycclResult_t anycclWorkWaitAnyFor(const anycclWork_t* works, size_t count,
                                    unsigned int timeout_ms, size_t* place) {
  return wait_any_for(works, count, Deadline::in(std::chrono::milliseconds(timeout_ms)), place);
}

anycclResult_t anycclWorkTestAny(const anycclWork_t* works, size_t count, size_t* place,
                                 int* done) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(place, "index"));
    ANYCCL_CHECK(need(done, "done"));
    *place = count;
    *done = 1;
    SomeWorks some;
    ANYCCL_CHECK(some.add(works, count));
    if (some.pending.empty()) return {};
    const std::size_t first = test_any(some.pending);
    if (first == some.pending.size()) return *done = 0, Status();
    *place = some.places[first];
    return some.pending[first].status();
  });
}

anycclResult_t anycclWorkLimit(anycclWork_t work, unsigned int timeout_ms) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(work, "work"));
    ANYCCL_CHECK(check_wait({}));
    return work->comm->limit(*work->operation, std::chrono::milliseconds(timeout_ms));
  });
}

anycclResult_t anycclWorkNotify(anycclWork_t work, void (*fn)(void*), void* userdata) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(work, "work"));
    if (fn == nullptr) return error(Code::invalid_argument, "fn is NULL");
    ANYCCL_CHECK(work->comm->failure());
    return background_progress().notify(work->comm, work->operation, fn, userdata);
  });
}

anycclResult_t anycclWorkSource(anycclWork_t work, int* rank) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(work, "work"));
    ANYCCL_CHECK(need(rank, "rank"));
    if (work->collective != Collective::recv || !work->operation->done())
      return error(Code::invalid_usage, "the work is not a receive, or not complete");
    *rank = index(static_cast<const MessageRequest&>(work->operation->on_host()).peer());
    return {};
  });
}

anycclResult_t anycclWorkFree(anycclWork_t work) {
  if (work == nullptr || !work->comm->forked()) delete work;  // as anycclCommDestroy
  return anycclSuccess;
}

anycclResult_t anycclThreadInterrupt(int (*check)(void* argument), void* argument) {
  interrupt_check_of_thread = {check, argument};
  return anycclSuccess;
}
