// The C interface: ids and communicators.

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/side_by_side.hpp"
#include "c/creation.hpp"
#include "framework/communicator/comm_memory.hpp"
#include "framework/communicator/planning.hpp"
#include "platform/device/devices.hpp"
#include "runtime/members/team.hpp"
#include "runtime/process/metrics.hpp"

namespace anyccl {
namespace {

/// Numbers of devices, as anycclCommInitAll gets them.
Status check_devices(const int* devices, int count) {
  for (int i = 0; devices != nullptr && i < count; ++i)
    if (devices[i] < 0 || std::find(devices, devices + i, devices[i]) != devices + i)
      return error(Code::invalid_argument, "devlist[{}] is {}: {}", i, devices[i],
                   devices[i] < 0 ? "devices have numbers from 0" : "another rank has it already");
  return {};
}

/// The devices of the ranks, as anycclCommInitAll gets them, if the program uses devices in this
/// thread; else none. Without a list rank r has device r, or the current one if there is none.
Result<std::vector<std::shared_ptr<Device>>> devices_of(const int* devices, int count) {
  std::vector<std::shared_ptr<Device>> all;
  const std::shared_ptr<Device> current = device_in_use();
  for (int r = 0; current != nullptr && r < count; ++r) {
    auto device = open_device(devices == nullptr ? r : devices[r]);
    if (!device.ok() && devices != nullptr) return device.status();
    all.push_back(device.ok() ? *std::move(device) : current);
  }
  return all;
}

/// Ok, in_progress, or why the communicator failed. First takes over the result of the background,
/// and looks for failures of peers.
Status state_of(anycclComm& handle) {
  adopt(handle);
  const bool is_open = handle.open.load(std::memory_order_seq_cst);
  if (is_open) {
    handle.comm->check_peers();
    ANYCCL_CHECK(handle.comm->failure());
  }
  const std::lock_guard lock(handle.mutex);
  ANYCCL_CHECK(handle.failure);
  const auto& [own, made] = handle.background;
  if (own != nullptr)
    return Status(Code::in_progress, "the communicator is being created or finalized");
  if (is_open && made != nullptr && !made->done())
    return Status(Code::in_progress, "another communicator is being made from this one");
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
    const auto [name, settings, blocking, device] = creation_in(config);
    const auto make = NewDevice::with_queues(
        [=, name = name, settings = settings] {
          return join_by_id(id, nranks, rank, name, settings);
        },
        device);
    if (!blocking)
      return begin(comm, name, device, Background::start(make, [id, device = device] {
                     drop_unique_id(id);
                     device->abandon();
                   }));
    const auto join = [=, name = name, device = device]() -> Status {
      ANYCCL_TRY(CommPtr made, make());
      *comm = make_handle(std::move(made), name, *device);
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
    ANYCCL_TRY(const auto devices, devices_of(devlist, ndev));
    ANYCCL_TRY(std::vector<CommPtr> made, join_all_here(ndev));
    std::vector<std::unique_ptr<NewDevice>> new_devices;
    std::vector<std::function<Status()>> jobs;
    for (std::size_t r = 0; r < made.size(); ++r) {
      new_devices.push_back(std::make_unique<NewDevice>(
          devices.empty() ? nullptr : devices[r], creation_limit(made[r]->membership().settings)));
      jobs.emplace_back([&, r] { return new_devices[r]->use_queues(made[r]); });
    }
    if (made[0]->membership().device_queues) ANYCCL_CHECK(run_side_by_side(jobs));
    for (std::size_t r = 0; r < made.size(); ++r) {
      comms[r] = make_handle(std::move(made[r]), {}, *new_devices[r]);
      if (devices.empty())
        comms[r]->device.number = devlist == nullptr ? static_cast<int>(r) : devlist[r];
    }
    return {};
  });
}

anycclResult_t anycclCommInitEnv(anycclComm_t* comm) {
  return anycclCommInitEnvConfig(comm, nullptr);
}

anycclResult_t anycclCommInitEnvConfig(anycclComm_t* comm, anycclConfig_t* config) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(comm, "comm"));
    ANYCCL_CHECK(check_wait({}));
    *comm = nullptr;
    const auto [name, settings, blocking, device] = creation_in(config);
    const auto make = NewDevice::with_queues(
        [name = name, settings = settings] { return join_by_environment(name, settings); }, device);
    if (!blocking)
      return begin(comm, name, device,
                   Background::start(make, [device = device] { device->abandon(); }));
    ANYCCL_TRY(CommPtr made, make());
    *comm = make_handle(std::move(made), name, *device);
    return {};
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
    ANYCCL_CHECK(need_no_group("anycclCommParts"));
    ANYCCL_CHECK(check_wait({.comm = &team->first()}));
    return grow(*team, threads);
  });
}

anycclResult_t anycclCommGetAsyncError(anycclComm_t comm, anycclResult_t* error) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need(comm, "comm"));
    ANYCCL_CHECK(need(error, "error"));
    const Status state = comm->is_inherited() ? need_comm(comm) : state_of(*comm);
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

anycclResult_t anycclCommGetTimeout(anycclComm_t comm, unsigned int* timeout_ms) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(timeout_ms, "timeout_ms"));
    const std::int64_t most = comm->comm->membership().wait_limits.most.count();
    *timeout_ms = static_cast<unsigned>(std::min<std::int64_t>(most, ANYCCL_NO_TIMEOUT));
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
    *device = comm->device.number;
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
        *value = CommMemory(*comm->comm).bytes();
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
    return team->dump(path);
  });
}

anycclResult_t anycclCommMetrics(anycclComm_t comm, const char** text) {
  static thread_local std::string kept;
  return guarded(comm, [&]() -> Status {
    ANYCCL_TRY(const std::shared_ptr<Team> team, keep(comm));
    ANYCCL_CHECK(need(text, "text"));
    kept = team->metrics_text();
    *text = kept.c_str();
    return {};
  });
}

anycclResult_t anycclMetrics(const char** text) {
  static thread_local std::string kept;
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(check_wait({}));
    ANYCCL_CHECK(need(text, "text"));
    kept = metrics_text(Deadline()).value_or("");
    *text = kept.c_str();
    return {};
  });
}

anycclResult_t anycclCommLastPlan(anycclComm_t comm, const char** text) {
  static thread_local std::string kept;
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(text, "text"));
    kept = Planning(*comm->comm).last_plan();
    *text = kept.c_str();
    return {};
  });
}
