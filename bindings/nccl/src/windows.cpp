// Windows and one-sided operations.

#include <vector>

#include "second_name.hpp"
#include "streams.hpp"
#include "types.hpp"

namespace anyccl::nccl {
namespace {

std::vector<anycclWaitSignalDesc_t> to_anyccl(const ncclWaitSignalDesc_t* descs, int count) {
  std::vector<anycclWaitSignalDesc_t> all;
  for (int i = 0; descs != nullptr && i < count; ++i)
    all.push_back({descs[i].opCnt, descs[i].peer, descs[i].sigIdx, descs[i].ctx});
  return all;
}

}  // namespace
}  // namespace anyccl::nccl

using namespace anyccl::nccl;

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                    int winFlags) {
  return passed_on(anycclCommWindowRegister(to_anyccl(comm), buff, size, to_anyccl(win), winFlags));
}
ANYCCL_SECOND_NAME(ncclCommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return passed_on(anycclCommWindowDeregister(to_anyccl(comm), to_anyccl(win)));
}
ANYCCL_SECOND_NAME(ncclCommWindowDeregister);

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr) {
  return passed_on(anycclWinGetUserPtr(to_anyccl(comm), to_anyccl(win), outUserPtr));
}
ANYCCL_SECOND_NAME(ncclWinGetUserPtr);

ncclResult_t ncclPutSignal(const void* localbuff, size_t count, ncclDataType_t datatype, int peer,
                           ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
                           unsigned int flags, ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t found = check(datatype, comm); found != ncclSuccess) return found;
  return in_stream(comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclPutSignal(localbuff, count, to_anyccl(datatype), peer, to_anyccl(peerWin),
                           peerWinOffset, sigIdx, ctx, flags, c, s);
  });
}
ANYCCL_SECOND_NAME(ncclPutSignal);

ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                        cudaStream_t stream) {
  return in_stream(comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclSignal(peer, sigIdx, ctx, flags, c, s);
  });
}
ANYCCL_SECOND_NAME(ncclSignal);

ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm,
                            cudaStream_t stream) {
  return in_stream(comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    auto all = to_anyccl(signalDescs, nDesc);
    return anycclWaitSignal(nDesc, signalDescs == nullptr ? nullptr : all.data(), c, s);
  });
}
ANYCCL_SECOND_NAME(ncclWaitSignal);
