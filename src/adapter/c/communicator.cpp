// The C interface: ids and communicators.

#include <algorithm>
#include <optional>

#include "adapter/c/handle.hpp"
#include "adapter/team.hpp"
#include "base/error.hpp"

namespace anyccl {
namespace {

anycclComm_t make_handle(CommPtr comm, std::string name = {}) {
  auto* handle = new anycclComm;
  handle->name = std::move(name);
  handle->set(std::move(comm));
  return handle;
}

/// Whether calls are to wait; NULL and what is not set mean the default.
Result<bool> is_blocking(const anycclConfig_t* config) {
  constexpr anycclConfig_t kInitial = ANYCCL_CONFIG_INITIALIZER;
  if (config == nullptr) return true;
  if (config->size != kInitial.size || config->magic != kInitial.magic)
    return error(Code::invalid_argument,
                 "config was not set to ANYCCL_CONFIG_INITIALIZER, or for another version");
  if (config->blocking == ANYCCL_CONFIG_UNDEF_INT) return true;
  if (config->blocking != 0 && config->blocking != 1)
    return error(Code::invalid_argument, "config->blocking is {} instead of 0 or 1",
                 config->blocking);
  return config->blocking == 1;
}

/// A size of the configuration; 0: not set. What is wrong with it is found later, but for numbers
/// that are none.
Result<std::size_t> size_in(int bytes, const char* field) {
  if (bytes == ANYCCL_CONFIG_UNDEF_INT) return std::size_t{0};
  if (bytes > 0) return static_cast<std::size_t>(bytes);
  return error(Code::invalid_argument, "config->{} is {} bytes", field, bytes);
}

/// The time limit of operations; absent: the configuration says nothing of it.
Result<std::optional<std::chrono::milliseconds>> time_limit_in(int milliseconds) {
  if (milliseconds == ANYCCL_CONFIG_UNDEF_INT) return std::optional<std::chrono::milliseconds>();
  if (milliseconds >= 0) return std::optional(std::chrono::milliseconds(milliseconds));
  return error(Code::invalid_argument, "config->timeoutMs is {} ms", milliseconds);
}

/// With what is wrong with them: other ranks may have to hear of it.
CommSettings settings_in(const anycclConfig_t* config) {
  CommSettings settings;
  if (config == nullptr) return settings;
  if (config->algo != nullptr) settings.algo = config->algo;
  if (config->proto != nullptr) settings.proto = config->proto;
  const auto chunk = size_in(config->chunkBytes, "chunkBytes");
  const auto buffer = size_in(config->buffSize, "buffSize");
  const auto time_limit = time_limit_in(config->timeoutMs);
  settings.problem = !chunk.ok()    ? chunk.status()
                     : !buffer.ok() ? buffer.status()
                                    : time_limit.status();
  if (settings.problem.ok()) {
    settings.time_limit = *time_limit;
    settings.chunk_bytes = *chunk;
    settings.buffer_bytes = *buffer;
  }
  return settings;
}

std::string name_in(const anycclConfig_t* config) {
  return config == nullptr || config->commName == nullptr ? "" : config->commName;
}

/// Numbers of devices, as anycclCommInitAll gets them.
Status check_devices(const int* devices, int count) {
  for (int i = 0; devices != nullptr && i < count; ++i)
    if (devices[i] < 0 || std::find(devices, devices + i, devices[i]) != devices + i)
      return error(Code::invalid_argument, "devlist[{}] is {}: {}", i, devices[i],
                   devices[i] < 0 ? "devices have numbers from 0" : "another rank has it already");
  return {};
}

/// Runs `job` in the background of a new handle, which has its result later.
Status begin(anycclComm_t* comm, std::string name, std::function<Result<CommPtr>()> job) {
  auto handle = std::make_unique<anycclComm>();
  handle->name = std::move(name);
  handle->blocking = false;
  handle->background = Background::start(std::move(job));
  *comm = handle.release();
  return Status(Code::in_progress, "the communicator is being created");
}

/// Takes over what the background has come to; what is still under way stays so.
void adopt(anycclComm& handle) {
  const std::lock_guard lock(handle.mutex);
  if (handle.background == nullptr || !handle.background->done()) return;
  Result<CommPtr> made = handle.background->take();
  handle.background = nullptr;
  handle.failure = made.status();
  if (!made.ok()) return;
  handle.set(*std::move(made));
  handle.finalized = handle.comm == nullptr;
}

/// For calls that take long, during which another thread may abort it.
Result<std::shared_ptr<Team>> keep(anycclComm_t comm) {
  ANYCCL_CHECK(need_comm(comm));
  const std::lock_guard lock(comm->mutex);
  ANYCCL_CHECK(check_wait({.comm = comm->comm.get()}));
  if (comm->comm == nullptr)
    return error(Code::aborted, "the communicator was aborted by another thread");
  return comm->team;
}

Status state_of(anycclComm& handle) {
  adopt(handle);
  if (handle.comm != nullptr) {
    handle.comm->check_peers();
    return handle.comm->failure();
  }
  const std::lock_guard lock(handle.mutex);
  if (handle.background != nullptr)
    return Status(Code::in_progress, "the communicator is being created or finalized");
  return handle.failure;
}

/// Makes a communicator from `comm` by make(parent, name, settings): at once, in the background, or at the end
/// of the group.
template <typename Make>
Status derive(anycclComm_t comm, anycclComm_t* newcomm, const anycclConfig_t* config,
              const Make& make) {
  ANYCCL_TRY(const std::shared_ptr<Team> parent, keep(comm));
  ANYCCL_CHECK(need(newcomm, "newcomm"));
  *newcomm = nullptr;
  ANYCCL_TRY(const bool blocking, is_blocking(config));
  const std::string name =
      config == nullptr || config->commName == nullptr ? comm->name : config->commName;
  const CommSettings settings = settings_in(config);
  const auto job = [=]() -> Result<CommPtr> { return make(parent->first(), name, settings); };
  if (!blocking) return begin(newcomm, name, job);
  const auto place = [=]() -> Status {
    ANYCCL_TRY(CommPtr made, job());
    if (made != nullptr) *newcomm = make_handle(std::move(made), name);
    return {};
  };
  if (!in_group()) return place();
  add_to_group(comm, place);
  return {};
}

Status check_shrink(const int* excluded, int count, int flags) {
  if (count < 0) return error(Code::invalid_argument, "excludeRanksCount is {}", count);
  if (count > 0) ANYCCL_CHECK(need(excluded, "excludeRanksList"));
  if (flags == ANYCCL_SHRINK_ABORT)
    return error(Code::unsupported,
                 "ANYCCL_SHRINK_ABORT: ranks of a communicator that has failed cannot meet again "
                 "through it; create a new one with a unique id");
  if (flags != ANYCCL_SHRINK_DEFAULT)
    return error(Code::invalid_argument, "shrinkFlags is {} instead of {} or {}", flags,
                 ANYCCL_SHRINK_DEFAULT, ANYCCL_SHRINK_ABORT);
  return {};
}

anycclResult_t refuse_suspension(anycclComm_t comm, const char* call) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    return error(Code::unsupported,
                 "{}: memory that peers have mapped cannot be given back; destroy the communicator "
                 "and create it again",
                 call);
  });
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
  return anycclCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

anycclResult_t anycclCommInitRankConfig(anycclComm_t* comm, int nranks, anycclUniqueId id, int rank,
                                        anycclConfig_t* config) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(comm, "comm"));
    ANYCCL_CHECK(check_wait({}));
    *comm = nullptr;
    ANYCCL_TRY(const bool blocking, is_blocking(config));
    const std::string name = name_in(config);
    const CommSettings settings = settings_in(config);
    if (!blocking)
      return begin(comm, name, [=] { return join_by_id(id, nranks, rank, name, settings); });
    const auto join = [=]() -> Status {
      ANYCCL_TRY(CommPtr made, join_by_id(id, nranks, rank, name, settings));
      *comm = make_handle(std::move(made), name);
      return {};
    };
    if (!in_group()) return join();
    add_to_group(comm, join);
    return {};
  });
}

anycclResult_t anycclCommInitRankScalable(anycclComm_t* comm, int nranks, int rank, int nids,
                                          anycclUniqueId* ids, anycclConfig_t* config) {
  const anycclResult_t checked = guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(ids, "ids"));
    if (nids < 1) return error(Code::invalid_argument, "nids is {} instead of at least 1", nids);
    return {};
  });
  return checked != anycclSuccess ? checked
                                  : anycclCommInitRankConfig(comm, nranks, ids[0], rank, config);
}

anycclResult_t anycclCommInitAll(anycclComm_t* comms, int ndev, const int* devlist) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(comms, "comms"));
    ANYCCL_CHECK(check_wait({}));
    ANYCCL_CHECK(check_devices(devlist, ndev));
    ANYCCL_TRY(std::vector<CommPtr> made, join_all_here(ndev));
    for (std::size_t r = 0; r < made.size(); ++r) {
      comms[r] = make_handle(std::move(made[r]));
      comms[r]->device = devlist == nullptr ? static_cast<int>(r) : devlist[r];
    }
    return {};
  });
}

anycclResult_t anycclCommInitEnv(anycclComm_t* comm) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(comm, "comm"));
    ANYCCL_CHECK(check_wait({}));
    *comm = nullptr;
    ANYCCL_TRY(CommPtr made, join_by_environment());
    *comm = make_handle(std::move(made));
    return {};
  });
}

anycclResult_t anycclCommSplit(anycclComm_t comm, int color, int key, anycclComm_t* newcomm,
                               anycclConfig_t* config) {
  return guarded(comm, [&]() -> Status {
    return derive(comm, newcomm, config,
                  [=](Comm& parent, const std::string& name, const CommSettings& settings) {
                    return split(parent, color, key, kAnyRing, name, settings);
                  });
  });
}

anycclResult_t anycclCommShrink(anycclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                                anycclComm_t* newcomm, anycclConfig_t* config, int shrinkFlags) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(check_shrink(excludeRanksList, excludeRanksCount, shrinkFlags));
    const std::vector<int> excluded(excludeRanksList, excludeRanksList + excludeRanksCount);
    return derive(comm, newcomm, config,
                  [excluded](Comm& parent, const std::string& name, const CommSettings& settings) {
                    return shrink(parent, excluded, name, settings);
                  });
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
    if (rank != -1)
      return error(Code::invalid_argument, "rank is {}: ranks of comm keep theirs and pass -1",
                   rank);
    const std::optional<anycclUniqueId> known = id == nullptr ? std::nullopt : std::optional(*id);
    return derive(comm, newcomm, config,
                  [=](Comm& parent, const std::string& name, const CommSettings& settings) {
                    return grow(parent, nranks, known ? &*known : nullptr, name, settings);
                  });
  });
}

anycclResult_t anycclCommRevoke(anycclComm_t comm, int revokeFlags) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_TRY(const std::shared_ptr<Team> team, keep(comm));
    if (revokeFlags != ANYCCL_REVOKE_DEFAULT)
      return error(Code::invalid_argument, "revokeFlags is {} instead of {}", revokeFlags,
                   ANYCCL_REVOKE_DEFAULT);
    const Membership& me = team->first().membership();
    team->abort(error(Code::aborted, "{} revoked the communicator", me.names[uindex(me.rank)]));
    return {};
  });
}

anycclResult_t anycclCommSuspend(anycclComm_t comm, int) {
  return refuse_suspension(comm, "anycclCommSuspend");
}

anycclResult_t anycclCommResume(anycclComm_t comm) {
  return refuse_suspension(comm, "anycclCommResume");
}

anycclResult_t anycclCommParts(anycclComm_t comm, int threads) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_TRY(const std::shared_ptr<Team> team, keep(comm));
    return grow(*team, threads);
  });
}

anycclResult_t anycclCommGetAsyncError(anycclComm_t comm, anycclResult_t* error) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need(comm, "comm"));
    ANYCCL_CHECK(need(error, "error"));
    const Status state = state_of(*comm);
    *error = state.ok() ? anycclSuccess : report(state, comm);
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

anycclResult_t anycclCommCuDevice(anycclComm_t comm, int* device) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(device, "device"));
    *device = comm->device;
    return {};
  });
}

anycclResult_t anycclCommMemStats(anycclComm_t comm, anycclCommMemStat_t stat, uint64_t* value) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(value, "value"));
    switch (stat) {
      case anycclStatGpuMemSuspend:
      case anycclStatGpuMemSuspended:
        *value = 0;
        return {};
      case anycclStatGpuMemPersist:
      case anycclStatGpuMemTotal:
        *value = comm->comm->memory_bytes();
        return {};
    }
    return error(Code::invalid_argument, "stat is {} instead of 0..{}", static_cast<int>(stat),
                 static_cast<int>(anycclStatGpuMemTotal));
  });
}

anycclResult_t anycclCommDump(anycclComm_t comm, const char* path) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_TRY(const std::shared_ptr<Team> team, keep(comm));
    ANYCCL_CHECK(need(path, "path"));
    return team->first().dump(path);
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
