/* NCCL's C interface, in the shape of version 2.29, for programs that run on anyccl's libnccl.so.2.
 * Needs nothing of CUDA. C99 and C++.
 *
 * anyccl/anyccl.h says what a function does, under the name with "anyccl" in front; this header
 * says how it differs. docs/nccl.md says how programs that were built with NVIDIA's nccl.h come
 * here, and which calls are refused.
 *
 * - Memory: of the host, or of the device of the communicator (anyccl/device.h).
 * - Streams: those of CUDA, if the communicator has a device; else NULL alone. A call returns when
 *   its result is there.
 * - Errors: ncclGetLastError has the reason in words.
 */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* A stream of CUDA, as its own header has it. */
#ifndef __DRIVER_TYPES_H__
typedef struct CUstream_st* cudaStream_t;
#endif

#define NCCL_MAJOR 2
#define NCCL_MINOR 29
#define NCCL_PATCH 7
#define NCCL_SUFFIX ""
#define NCCL_VERSION(x, y, z) \
  ((x) <= 2 && (y) <= 8 ? (x)*1000 + (y)*100 + (z) : (x)*10000 + (y)*100 + (z))
#define NCCL_VERSION_CODE NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH)

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct ncclComm* ncclComm_t;            /* One rank's handle of a communicator. */
typedef struct ncclWindow_vidmem* ncclWindow_t; /* Memory of all ranks that peers may put into. */
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3, /* Also of a communicator that was aborted or revoked. */
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5, /* Also a call that is not supported. */
  ncclRemoteError = 6,  /* Also a time limit that has passed. */
  ncclInProgress = 7,
  ncclNumResults = 8
} ncclResult_t;

typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff /* Operators that programs create lie between. */
} ncclRedOp_t;

typedef enum {
  ncclScalarDevice = 0, /* Memory that the host can read, too. */
  ncclScalarHostImmediate = 1
} ncclScalarResidence_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT (-1.0f)
#define NCCL_API_MAGIC 0xcafebeef
#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00
#define NCCL_SUSPEND_MEM 0x01
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_STRICT_ORDERING 0x02
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

/* How a communicator is created. Start from NCCL_CONFIG_INITIALIZER. `blocking` and `commName` have
 * an effect; any value of the others is accepted and changes nothing. */
typedef struct ncclConfig_v22900 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
  int graphUsageMode;
  int numRmaCtx;
} ncclConfig_t;
#define NCCL_CONFIG_INITIALIZER                                                     \
  {                                                                                 \
    sizeof(ncclConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
        NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
        NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT         \
  }

typedef struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime; /* Microseconds. */
} ncclSimInfo_t;
#define NCCL_SIM_INFO_INITIALIZER \
  { sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT }

typedef enum {
  ncclStatGpuMemSuspend = 0,
  ncclStatGpuMemSuspended = 1,
  ncclStatGpuMemPersist = 2,
  ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

typedef struct {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
} ncclWaitSignalDesc_t;

/* Declares a function with its second name, which begins with a p: a profiler that defines the
 * first one finds the library's function there. */
#define NCCL_FUNCTION(result, name, ...) \
  result name(__VA_ARGS__);              \
  result p##name(__VA_ARGS__)

/* *version = that of the last configuration that this process has passed; before, 22907. */
NCCL_FUNCTION(ncclResult_t, ncclGetVersion, int* version);
NCCL_FUNCTION(const char*, ncclGetErrorString, ncclResult_t result);
/* The words of the last error: of `comm`, or, with NULL, of any call of this thread. Valid until
 * this thread asks again. */
NCCL_FUNCTION(const char*, ncclGetLastError, ncclComm_t comm);
/* Does nothing. */
NCCL_FUNCTION(void, ncclResetDebugInit, void);

/* ---- Communicators --------------------------------------------------------------------------- */

NCCL_FUNCTION(ncclResult_t, ncclGetUniqueId, ncclUniqueId* id);
NCCL_FUNCTION(ncclResult_t, ncclCommInitRank, ncclComm_t* comm, int nranks, ncclUniqueId id,
              int rank);
NCCL_FUNCTION(ncclResult_t, ncclCommInitRankConfig, ncclComm_t* comm, int nranks, ncclUniqueId id,
              int rank, ncclConfig_t* config);
NCCL_FUNCTION(ncclResult_t, ncclCommInitRankScalable, ncclComm_t* comm, int nranks, int rank,
              int nids, ncclUniqueId* ids, ncclConfig_t* config);
NCCL_FUNCTION(ncclResult_t, ncclCommInitAll, ncclComm_t* comms, int ndev, const int* devlist);
NCCL_FUNCTION(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
              ncclConfig_t* config);
NCCL_FUNCTION(ncclResult_t, ncclCommShrink, ncclComm_t comm, int* excludeRanksList,
              int excludeRanksCount, ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);
NCCL_FUNCTION(ncclResult_t, ncclCommGetUniqueId, ncclComm_t comm, ncclUniqueId* id);
NCCL_FUNCTION(ncclResult_t, ncclCommGrow, ncclComm_t comm, int nranks, const ncclUniqueId* id,
              int rank, ncclComm_t* newcomm, ncclConfig_t* config);
NCCL_FUNCTION(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int revokeFlags);
NCCL_FUNCTION(ncclResult_t, ncclCommFinalize, ncclComm_t comm);
NCCL_FUNCTION(ncclResult_t, ncclCommDestroy, ncclComm_t comm);
NCCL_FUNCTION(ncclResult_t, ncclCommAbort, ncclComm_t comm);
NCCL_FUNCTION(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t* error);
NCCL_FUNCTION(ncclResult_t, ncclCommCount, const ncclComm_t comm, int* count);
NCCL_FUNCTION(ncclResult_t, ncclCommCuDevice, const ncclComm_t comm, int* device);
NCCL_FUNCTION(ncclResult_t, ncclCommUserRank, const ncclComm_t comm, int* rank);
NCCL_FUNCTION(ncclResult_t, ncclCommMemStats, ncclComm_t comm, ncclCommMemStat_t stat,
              uint64_t* value);
/* Both are refused. */
NCCL_FUNCTION(ncclResult_t, ncclCommSuspend, ncclComm_t comm, int flags);
NCCL_FUNCTION(ncclResult_t, ncclCommResume, ncclComm_t comm);

/* ---- Memory and operators -------------------------------------------------------------------- */

/* Memory of the device that is current in this thread, or, in a program that uses none, memory of
 * the host that local peers read in place. */
NCCL_FUNCTION(ncclResult_t, ncclMemAlloc, void** ptr, size_t size);
NCCL_FUNCTION(ncclResult_t, ncclMemFree, void* ptr);
NCCL_FUNCTION(ncclResult_t, ncclCommRegister, const ncclComm_t comm, void* buff, size_t size,
              void** handle);
NCCL_FUNCTION(ncclResult_t, ncclCommDeregister, const ncclComm_t comm, void* handle);
NCCL_FUNCTION(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t* op, void* scalar,
              ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm);
NCCL_FUNCTION(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm);

/* ---- Collectives ----------------------------------------------------------------------------- */

NCCL_FUNCTION(ncclResult_t, ncclReduce, const void* sendbuff, void* recvbuff, size_t count,
              ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
              cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclBcast, void* buff, size_t count, ncclDataType_t datatype, int root,
              ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclBroadcast, const void* sendbuff, void* recvbuff, size_t count,
              ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclAllReduce, const void* sendbuff, void* recvbuff, size_t count,
              ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclReduceScatter, const void* sendbuff, void* recvbuff,
              size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
              cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclAllGather, const void* sendbuff, void* recvbuff, size_t sendcount,
              ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclAlltoAll, const void* sendbuff, void* recvbuff, size_t count,
              ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclGather, const void* sendbuff, void* recvbuff, size_t count,
              ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclScatter, const void* sendbuff, void* recvbuff, size_t count,
              ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);

/* ---- Messages, one-sided operations and groups ----------------------------------------------- */

NCCL_FUNCTION(ncclResult_t, ncclSend, const void* sendbuff, size_t count, ncclDataType_t datatype,
              int peer, ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclRecv, void* recvbuff, size_t count, ncclDataType_t datatype,
              int peer, ncclComm_t comm, cudaStream_t stream);
/* Windows are memory of the host. */
NCCL_FUNCTION(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void* buff, size_t size,
              ncclWindow_t* win, int winFlags);
NCCL_FUNCTION(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t win);
NCCL_FUNCTION(ncclResult_t, ncclWinGetUserPtr, ncclComm_t comm, ncclWindow_t win,
              void** outUserPtr);
NCCL_FUNCTION(ncclResult_t, ncclPutSignal, const void* localbuff, size_t count,
              ncclDataType_t datatype, int peer, ncclWindow_t peerWin, size_t peerWinOffset,
              int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclSignal, int peer, int sigIdx, int ctx, unsigned int flags,
              ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclWaitSignal, int nDesc, ncclWaitSignalDesc_t* signalDescs,
              ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(ncclResult_t, ncclGroupStart, void);
NCCL_FUNCTION(ncclResult_t, ncclGroupEnd, void);
NCCL_FUNCTION(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t* info);

#undef NCCL_FUNCTION

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* NCCL_H_ */
