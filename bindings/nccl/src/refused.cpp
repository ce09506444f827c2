// Functions of NCCL that are refused: they are about code that runs on devices. Their types are of
// other headers than nccl.h; here pointers stand for these.

#include <string>

#include "nccl.h"
#include "results.hpp"

#define ANYCCL_REFUSED(name, parameters, comm)                                             \
  extern "C" __attribute__((visibility("default"))) ncclResult_t name parameters {         \
    return anyccl::nccl::refuse(comm, ncclInvalidUsage,                                    \
                                #name " is not supported: anyccl has no code on devices"); \
  }                                                                                        \
  extern "C" __attribute__((visibility("default"), alias(#name))) decltype(name) p##name

ANYCCL_REFUSED(ncclCommQueryProperties, (ncclComm_t comm, void*), comm);
ANYCCL_REFUSED(ncclDevCommCreate, (ncclComm_t comm, const void*, void*), comm);
ANYCCL_REFUSED(ncclDevCommDestroy, (ncclComm_t comm, const void*), comm);
ANYCCL_REFUSED(ncclGetLsaDevicePointer, (ncclWindow_t, size_t, int, void**), nullptr);
ANYCCL_REFUSED(ncclGetLsaMultimemDevicePointer, (ncclWindow_t, size_t, void**), nullptr);
ANYCCL_REFUSED(ncclGetMultimemDevicePointer, (ncclWindow_t, size_t, void*, void**), nullptr);
ANYCCL_REFUSED(ncclGetPeerDevicePointer, (ncclWindow_t, size_t, int, void**), nullptr);
