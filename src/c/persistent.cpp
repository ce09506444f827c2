// The C interface: calls that are prepared once and started many times.

#include "framework/communicator/persistent.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "c/device/device_calls.hpp"

struct anycclPrepared {
  anyccl::CommPtr comm;
  std::shared_ptr<anyccl::PersistentRequest> call;
  std::shared_ptr<anyccl::HostStream> stream;  // null: none
  anyccl::Collective collective;
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

/// Starts those of one communicator, which are at these places. Returns the first error; the others
/// are started, and works[place] of one that fails is left alone.
Status start_together(const anycclPrepared_t* prepared, const std::vector<std::size_t>& places,
                      anycclWork_t* works) {
  const CommPtr& comm = prepared[places[0]]->comm;
  std::vector<PersistentRequest*> calls;
  for (const std::size_t place : places) calls.push_back(prepared[place]->call.get());
  Comm::IssuedCalls started = PersistentRequest::start_all(calls);
  Status first;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto work = started[i].ok()
                          ? make_work(comm, *std::move(started[i]), prepared[places[i]]->collective)
                          : Result<anycclWork_t>(started[i].status());
    if (work.ok())
      works[places[i]] = *work;
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
    ANYCCL_CHECK(need_host_memory(comm, {call.input, call.output}));
    if (asked->stream != nullptr) ANYCCL_CHECK(need_stream(asked->stream));
    ANYCCL_TRY(auto kept, PersistentRequest::prepare(*comm->comm, call));
    comm->background_progress = true;
    *prepared = new anycclPrepared{comm->comm, std::move(kept),
                                   asked->stream == nullptr ? nullptr : asked->stream->stream,
                                   call.collective};
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
