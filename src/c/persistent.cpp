// The C interface: calls that are prepared once and started many times.

#include "framework/communicator/persistent.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "c/device/device_calls.hpp"

struct anycclPrepared {
  anyccl::CommPtr comm;
  std::shared_ptr<anyccl::PersistentRequest> call;
  std::shared_ptr<anyccl::HostStream> stream;  // null: none, or one of a device
  anyccl::Collective collective;
  std::shared_ptr<anyccl::DeviceCall> staged = nullptr;  // null: all is memory of the host
  std::shared_ptr<anyccl::Operation> last = nullptr;     // of its last start, if it is staged
  std::atomic<bool> is_starting = false;                 // by some thread, if it is staged
};

namespace anyccl {
namespace {

Result<anycclWork_t> start_in_stream(const anycclPrepared& prepared) {
  ANYCCL_CHECK(prepared.stream->check());
  ANYCCL_TRY(Batch batch, Batch::make(prepared.stream, 1));
  ANYCCL_TRY(std::shared_ptr<Operation> operation, batch.start(prepared.comm, *prepared.call));
  return new anycclWork{prepared.comm, std::move(operation), prepared.collective};
}

/// Returns an error if one of them is null or has a stream.
Status check_all(const anycclPrepared_t* prepared, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (prepared[i] == nullptr) return error(Code::invalid_argument, "prepared[{}] is NULL", i);
    if (prepared[i]->stream != nullptr)
      return error(Code::invalid_usage, "prepared[{}] has a stream: use anycclStart", i);
  }
  return {};
}

/// Gives a staged call its place, unless it is under way. Then no other thread does until
/// `is_starting` is false again.
Status begin_start(anycclPrepared& prepared) {
  ANYCCL_CHECK(prepared.call->check_alive());
  if (prepared.is_starting.exchange(true, std::memory_order_acquire)) return is_open_still();
  Status status;
  if (prepared.last != nullptr && !prepared.last->done()) {
    status = is_open_still();
  } else {
    prepared.last = nullptr;  // so that what ran it can run it again
    status = take_place(*prepared.staged, *prepared.comm);
  }
  if (!status.ok()) prepared.is_starting.store(false, std::memory_order_release);
  return status;
}

/// Those of one communicator that are started together.
struct Starts {
  explicit Starts(std::size_t most) {
    places.reserve(most);
    calls.reserve(most);
    gates.reserve(most);
    staged.reserve(most);
    begun.reserve(most);
  }
  ~Starts() {
    for (anycclPrepared* const one : begun)
      one->is_starting.store(false, std::memory_order_release);
  }
  Starts(const Starts&) = delete;
  Starts& operator=(const Starts&) = delete;
  Status add(std::size_t place, anycclPrepared& one) {
    if (one.staged != nullptr) {
      ANYCCL_CHECK(begin_start(one));
      begun.push_back(&one);
    }
    places.push_back(place);
    calls.push_back(one.call.get());
    gates.push_back(gate_of(one.staged));
    staged.push_back(one.staged);
    return {};
  }

  std::vector<std::size_t> places;  // in the caller's arrays
  std::vector<PersistentRequest*> calls;
  std::vector<Gate> gates;
  StagedCalls staged;
  std::vector<anycclPrepared*> begun;
};

/// Starts those of one communicator, which are at these places. Returns the first error; the others
/// are started, and works[place] of one that fails is left alone.
Status start_together(const anycclPrepared_t* prepared, const std::vector<std::size_t>& places,
                      anycclWork_t* works) {
  const CommPtr& comm = prepared[places[0]]->comm;
  Starts starts(places.size());
  Status first;
  for (const std::size_t place : places)
    if (Status ready = starts.add(place, *prepared[place]); !ready.ok() && first.ok())
      first = std::move(ready);
  if (starts.calls.empty()) return first;
  Comm::IssuedCalls started = PersistentRequest::start_all(starts.calls, starts.gates);
  if (!starts.begun.empty()) put_copies_around(started, starts.staged, comm);
  for (std::size_t i = 0; i < started.size(); ++i) {
    anycclPrepared& one = *prepared[starts.places[i]];
    if (one.staged != nullptr && started[i].ok()) one.last = *started[i];
    const auto work = started[i].ok() ? make_work(comm, *std::move(started[i]), one.collective)
                                      : Result<anycclWork_t>(started[i].status());
    if (work.ok())
      works[starts.places[i]] = *work;
    else if (first.ok())
      first = work.status();
  }
  return first;
}

}  // namespace
}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclPrepare(const anycclCall_t* asked, anycclComm_t comm,
                             anycclPrepared_t* prepared) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(prepared, "prepared"));
    *prepared = nullptr;
    ANYCCL_TRY(const Call call, read_call(asked, comm));
    std::shared_ptr<DeviceCall> staged;
    if (may_be_on_device(*comm, asked->stream)) {
      ANYCCL_TRY(staged, stage(call, comm, asked->stream));
    }
    if (asked->stream != nullptr && staged == nullptr) ANYCCL_CHECK(need_stream(asked->stream));
    ANYCCL_TRY(auto kept,
               PersistentRequest::prepare(*comm->comm, staged == nullptr ? call : staged->call()));
    comm->background_progress = true;
    *prepared = new anycclPrepared{comm->comm, std::move(kept),
                                   asked->stream == nullptr ? nullptr : asked->stream->stream,
                                   call.collective, std::move(staged)};
    return {};
  });
}

anycclResult_t anycclStart(anycclPrepared_t prepared, anycclWork_t* work) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(prepared, "prepared"));
    ANYCCL_CHECK(need(work, "work"));
    *work = nullptr;
    ANYCCL_CHECK(check_wait({}));
    if (prepared->stream != nullptr) {
      ANYCCL_TRY(*work, start_in_stream(*prepared));
      return {};
    }
    if (prepared->staged != nullptr) return start_together(&prepared, {0}, work);
    ANYCCL_TRY(std::shared_ptr<Operation> operation, prepared->call->start());
    ANYCCL_TRY(*work, make_work(prepared->comm, std::move(operation), prepared->collective));
    return {};
  });
}

anycclResult_t anycclStartAll(const anycclPrepared_t* prepared, size_t count, anycclWork_t* works) {
  return guarded(nullptr, [&]() -> Status {
    if (count == 0) return {};
    ANYCCL_CHECK(need(prepared, "prepared"));
    ANYCCL_CHECK(need(works, "works"));
    std::fill_n(works, count, nullptr);
    ANYCCL_CHECK(check_all(prepared, count));
    ANYCCL_CHECK(check_wait({}));
    std::vector<bool> seen(count);
    Status first;
    for (std::size_t i = 0; i < count; ++i) {
      if (seen[i]) continue;
      std::vector<std::size_t> places;
      for (std::size_t j = i; j < count; ++j) {
        if (prepared[j]->comm != prepared[i]->comm) continue;
        seen[j] = true;
        places.push_back(j);
      }
      Status status = start_together(prepared, places, works);
      if (first.ok()) first = std::move(status);
    }
    return first;
  });
}

anycclResult_t anycclPreparedFree(anycclPrepared_t prepared) {
  if (prepared == nullptr || !prepared->comm->forked()) delete prepared;  // as anycclCommDestroy
  return anycclSuccess;
}
