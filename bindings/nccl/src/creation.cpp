// Creation of communicators.

#include "config.hpp"
#include "handles.hpp"
#include "results.hpp"
#include "second_name.hpp"

namespace anyccl::nccl {
namespace {

/// Calls `create` with the configuration as anyccl has it. `comm`: what the new one is made of,
/// or null.
template <typename Create>
ncclResult_t with_config(const ncclConfig_t* given, ncclComm_t comm, Create create) {
  CallConfig config;
  const ncclResult_t result = read_config(given, comm, config);
  return result == ncclSuccess ? passed_on(create(config.get())) : result;
}

}  // namespace
}  // namespace anyccl::nccl

using namespace anyccl::nccl;

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return passed_on(anycclGetUniqueId(to_anyccl(id)));
}
ANYCCL_SECOND_NAME(ncclGetUniqueId);

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank) {
  return passed_on(anycclCommInitRank(to_anyccl(comm), nranks, to_anyccl(id), rank));
}
ANYCCL_SECOND_NAME(ncclCommInitRank);

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return with_config(config, nullptr, [&](anycclConfig_t* c) {
    return anycclCommInitRankConfig(to_anyccl(comm), nranks, to_anyccl(id), rank, c);
  });
}
ANYCCL_SECOND_NAME(ncclCommInitRankConfig);

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int nranks, int rank, int nids,
                                      ncclUniqueId* ids, ncclConfig_t* config) {
  return with_config(config, nullptr, [&](anycclConfig_t* c) {
    return anycclCommInitRankScalable(to_anyccl(comm), nranks, rank, nids, to_anyccl(ids), c);
  });
}
ANYCCL_SECOND_NAME(ncclCommInitRankScalable);

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ndev, const int* devlist) {
  return passed_on(anycclCommInitAll(to_anyccl(comms), ndev, devlist));
}
ANYCCL_SECOND_NAME(ncclCommInitAll);

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                           ncclConfig_t* config) {
  return with_config(config, comm, [&](anycclConfig_t* c) {
    return anycclCommSplit(to_anyccl(comm), color, key, to_anyccl(newcomm), c);
  });
}
ANYCCL_SECOND_NAME(ncclCommSplit);

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                            ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  return with_config(config, comm, [&](anycclConfig_t* c) {
    return anycclCommShrink(to_anyccl(comm), excludeRanksList, excludeRanksCount,
                            to_anyccl(newcomm), c, shrinkFlags);
  });
}
ANYCCL_SECOND_NAME(ncclCommShrink);

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* id) {
  return passed_on(anycclCommGetUniqueId(to_anyccl(comm), to_anyccl(id)));
}
ANYCCL_SECOND_NAME(ncclCommGetUniqueId);

ncclResult_t ncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId* id, int rank,
                          ncclComm_t* newcomm, ncclConfig_t* config) {
  return with_config(config, comm, [&](anycclConfig_t* c) {
    return anycclCommGrow(to_anyccl(comm), nranks, to_anyccl(id), rank, to_anyccl(newcomm), c);
  });
}
ANYCCL_SECOND_NAME(ncclCommGrow);
