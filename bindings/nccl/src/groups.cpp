// Groups.

#include "results.hpp"
#include "second_name.hpp"

namespace {

constexpr unsigned int kSimulationMagic = 0x74685283;

}  // namespace

using namespace anyccl::nccl;

ncclResult_t ncclGroupStart() {
  const ncclResult_t result = passed_on(anycclGroupStart());
  if (result == ncclSuccess) group_has_begun();
  return result;
}
ANYCCL_SECOND_NAME(ncclGroupStart);

ncclResult_t ncclGroupEnd() {
  return group_has_ended(anycclGroupEnd());
}
ANYCCL_SECOND_NAME(ncclGroupEnd);

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  anycclSimInfo_t simulated = ANYCCL_SIM_INFO_INITIALIZER;
  const bool is_known =
      info != nullptr && info->magic == kSimulationMagic && info->size >= sizeof(ncclSimInfo_t);
  const ncclResult_t result = group_has_ended(anycclGroupSimulateEnd(&simulated));
  if (!is_known)
    return refuse(nullptr, ncclInvalidArgument,
                  "info is not initialized: start from NCCL_SIM_INFO_INITIALIZER");
  if (result == ncclSuccess) info->estimatedTime = simulated.estimatedTime;
  return result;
}
ANYCCL_SECOND_NAME(ncclGroupSimulateEnd);
