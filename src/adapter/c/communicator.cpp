// The C interface: ids, communicators and memory.

#include "adapter/c/handle.hpp"
#include "base/error.hpp"
#include "platform/transport/segment/arena.hpp"

namespace anyccl {
namespace {

anycclComm_t make_handle(CommPtr comm) {
  auto* handle = new anycclComm;
  handle->comm = std::move(comm);
  return handle;
}

}  // namespace
}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclGetVersion(int* version) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(version, "version"));
    *version = ANYCCL_VERSION_CODE;
    return {};
  });
}

anycclResult_t anycclGetUniqueId(anycclUniqueId* id) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(id, "id"));
    ANYCCL_TRY(*id, make_unique_id());
    return {};
  });
}

anycclResult_t anycclCommInitRank(anycclComm_t* comm, int nranks, anycclUniqueId id, int rank) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(comm, "comm"));
    *comm = nullptr;
    if (in_group()) return add_to_group(comm, nranks, id, rank), Status{};
    ANYCCL_TRY(CommPtr made, join_by_id(id, nranks, rank));
    *comm = make_handle(std::move(made));
    return {};
  });
}

anycclResult_t anycclCommInitAll(anycclComm_t* comms, int ndev, const int* devlist) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(comms, "comms"));
    if (devlist != nullptr)
      return error(Code::invalid_argument, "devlist must be NULL: ranks are on host memory");
    ANYCCL_TRY(std::vector<CommPtr> made, join_all_here(ndev));
    for (std::size_t r = 0; r < made.size(); ++r) comms[r] = make_handle(std::move(made[r]));
    return {};
  });
}

anycclResult_t anycclCommInitEnv(anycclComm_t* comm) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(comm, "comm"));
    *comm = nullptr;
    ANYCCL_TRY(CommPtr made, join_by_environment());
    *comm = make_handle(std::move(made));
    return {};
  });
}

anycclResult_t anycclCommSplit(anycclComm_t comm, int color, int key, anycclComm_t* newcomm,
                               anycclConfig_t* config) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(newcomm, "newcomm"));
    *newcomm = nullptr;
    if (config != nullptr) return error(Code::unsupported, "config must be NULL in this version");
    ANYCCL_TRY(CommPtr made, split(*comm->comm, color, key));
    if (made != nullptr) *newcomm = make_handle(std::move(made));
    return {};
  });
}

anycclResult_t anycclCommDestroy(anycclComm_t comm) {
  return guarded(nullptr, [&]() -> Status {
    if (comm == nullptr) return {};
    comm->comm->finish();
    delete comm;
    return {};
  });
}

anycclResult_t anycclCommAbort(anycclComm_t comm) {
  return guarded(nullptr, [&]() -> Status {
    if (comm == nullptr) return {};
    const Membership& me = comm->comm->membership();
    comm->comm->abort(
        error(Code::aborted, "{} aborted the communicator", me.names[uindex(me.rank)]));
    delete comm;
    return {};
  });
}

anycclResult_t anycclCommGetAsyncError(anycclComm_t comm, anycclResult_t* error) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(error, "error"));
    comm->comm->examine();
    const Status failure = comm->comm->failure();
    *error = failure.ok() ? anycclSuccess : report(failure, comm);
    return {};
  });
}

anycclResult_t anycclCommCount(anycclComm_t comm, int* count) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(count, "count"));
    *count = comm->comm->size();
    return {};
  });
}

anycclResult_t anycclCommUserRank(anycclComm_t comm, int* rank) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(rank, "rank"));
    *rank = index(comm->comm->rank());
    return {};
  });
}

anycclResult_t anycclCommLastPlan(anycclComm_t comm, const char** text) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(text, "text"));
    comm->last_plan = comm->comm->last_plan();
    *text = comm->last_plan.c_str();
    return {};
  });
}

anycclResult_t anycclMemAlloc(void** ptr, size_t size) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(ptr, "ptr"));
    ANYCCL_TRY(*ptr, Arena::of_process().allocate(size));
    return {};
  });
}

anycclResult_t anycclMemFree(void* ptr) {
  return guarded(nullptr, [&]() -> Status { return Arena::of_process().free(ptr); });
}
