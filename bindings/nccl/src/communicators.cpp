// Communicators, once they are there.

#include "handles.hpp"
#include "results.hpp"
#include "second_name.hpp"

using namespace anyccl::nccl;

ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return passed_on(anycclCommRevoke(to_anyccl(comm), revokeFlags));
}
ANYCCL_SECOND_NAME(ncclCommRevoke);

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return passed_on(anycclCommFinalize(to_anyccl(comm)));
}
ANYCCL_SECOND_NAME(ncclCommFinalize);

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return passed_on(anycclCommDestroy(to_anyccl(comm)));
}
ANYCCL_SECOND_NAME(ncclCommDestroy);

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return passed_on(anycclCommAbort(to_anyccl(comm)));
}
ANYCCL_SECOND_NAME(ncclCommAbort);

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  anycclResult_t state = anycclSuccess;
  const ncclResult_t result =
      passed_on(anycclCommGetAsyncError(to_anyccl(comm), error == nullptr ? nullptr : &state));
  if (result == ncclSuccess) *error = passed_on(state);
  return result;
}
ANYCCL_SECOND_NAME(ncclCommGetAsyncError);

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return passed_on(anycclCommCount(to_anyccl(comm), count));
}
ANYCCL_SECOND_NAME(ncclCommCount);

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return passed_on(anycclCommCuDevice(to_anyccl(comm), device));
}
ANYCCL_SECOND_NAME(ncclCommCuDevice);

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return passed_on(anycclCommUserRank(to_anyccl(comm), rank));
}
ANYCCL_SECOND_NAME(ncclCommUserRank);

ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value) {
  return passed_on(
      anycclCommMemStats(to_anyccl(comm), static_cast<anycclCommMemStat_t>(stat), value));
}
ANYCCL_SECOND_NAME(ncclCommMemStats);

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
  return passed_on(anycclCommSuspend(to_anyccl(comm), flags));
}
ANYCCL_SECOND_NAME(ncclCommSuspend);

ncclResult_t ncclCommResume(ncclComm_t comm) {
  return passed_on(anycclCommResume(to_anyccl(comm)));
}
ANYCCL_SECOND_NAME(ncclCommResume);
