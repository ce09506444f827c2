/* anyccl: collective communication between the ranks of a job.
 *
 * The C interface, in NCCL's shape; docs/nccl.md says how a program written for NCCL ports. C99.
 *
 * Sections: codes and types, Communicators, Operators of your own, Memory, Collectives, Point to
 * point, Groups, Misuse. Included at the end: work.h, asynchronous operations; window.h, one-sided
 * operations; stream.h, streams and events; device.h, memory of devices; sequence.h, calls that
 * belong together; interrupt.h, Ctrl-C; ext/codec.h and ext/sparse.h, shorter vectors;
 * ext/neighbors.h, grids and graphs; ext/experts.h; ext/nccl.h.
 *
 * Rules for all calls
 * - Threads: any, but anycclCommFinalize and anycclCommDestroy come when no other thread is in a
 *   call on the communicator. The order of its collectives is the same on every rank; one that
 *   waits does not keep another thread from issuing the next, but a call that takes several, as a
 *   split, does (sequence.h). Issued calls of different communicators may come in any order.
 * - Errors: a call returns a code; anycclGetLastError(comm) says in words what, where and which
 *   rank, for calls without `comm` and those that free it anycclGetLastError(NULL). An error that a
 *   communicator meets while it runs makes it fail for good on all ranks: later operations return
 *   the same error, and anycclCommAbort or anycclCommDestroy frees it.
 * - Calls that differ between ranks are InvalidUsage on all of them. A rank that only gives, as the
 *   root of a broadcast, is through before the others look: it hears of that in a later call, once
 *   they have come to theirs; that may be anycclCommFinalize or anycclCommDestroy.
 * - Streams: with `stream` NULL the call returns when the operation is complete at this rank: the
 *   result is there and buffers may be reused. With a stream it does not wait for that; see
 *   anycclStreamCreate. The order on a communicator is that of the calls, whatever their streams:
 *   an operation, also a blocking one, comes after those before it (a collective: the collectives;
 *   a send: those to its peer; a receive: those from its peer), so waits until their
 *   streams come to them. In a group operations with a `stream`, also NULL, start at its end.
 * - Counts are in elements; buffers may have any alignment. A NULL buffer is allowed where its
 *   count is 0. Except in place, input and output must not overlap.
 */
#ifndef ANYCCL_H
#define ANYCCL_H

#include <stddef.h>
#include <stdint.h>

#define ANYCCL_MAJOR 0
#define ANYCCL_MINOR 1
#define ANYCCL_PATCH 0
#define ANYCCL_SUFFIX ""
#define ANYCCL_VERSION(x, y, z) ((x)*10000 + (y)*100 + (z)) /* To compare versions with. */
#define ANYCCL_VERSION_CODE ANYCCL_VERSION(ANYCCL_MAJOR, ANYCCL_MINOR, ANYCCL_PATCH)

#if defined(__GNUC__)
#define ANYCCL_API __attribute__((visibility("default")))
#else
#define ANYCCL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct anycclComm* anycclComm_t; /* One rank's handle of a communicator. */
#define ANYCCL_COMM_NULL NULL
typedef struct anycclStream* anycclStream_t; /* A queue of work. NULL: the call itself waits. */
typedef struct anycclEvent* anycclEvent_t;   /* A place in a stream's work, once it is recorded. */
typedef struct anycclWindow* anycclWindow_t; /* Memory of all ranks that peers may put into. */
typedef struct anycclPrepared* anycclPrepared_t; /* A call that can be started again and again. */
typedef struct anycclWork* anycclWork_t; /* An operation that was issued and may not be complete. */

typedef enum {
  anycclSuccess = 0,
  anycclUnhandledDeviceError = 1, /* A function of a device's driver failed. */
  anycclUnhandledCudaError = 1,   /* NCCL's name. */
  anycclSystemError = 2,
  anycclInternalError = 3,
  anycclInvalidArgument = 4,
  anycclInvalidUsage = 5,
  anycclRemoteError = 6,
  anycclInProgress = 7,
  anycclUnsupported = 8,
  anycclTimeout = 9,
  anycclAborted = 10,
  anycclNumResults = 11
} anycclResult_t;

/* Element types; all can be sent, and be reduced by some of the operators below. */
typedef enum {
  anycclInt8 = 0,
  anycclChar = 0,
  anycclUint8 = 1,
  anycclInt32 = 2,
  anycclInt = 2,
  anycclUint32 = 3,
  anycclInt64 = 4,
  anycclUint64 = 5,
  anycclFloat16 = 6,
  anycclHalf = 6,
  anycclFloat32 = 7,
  anycclFloat = 7,
  anycclFloat64 = 8,
  anycclDouble = 8,
  anycclBfloat16 = 9,
  anycclFloat8e4m3 = 10,
  anycclFloat8e5m2 = 11,
  anycclInt16 = 12,
  anycclUint16 = 13,
  anycclBool = 14,         /* One byte, 0 or 1; any other value is true, too. */
  anycclComplexFloat = 15, /* Real part, imaginary part. */
  anycclComplex64 = 15,
  anycclComplexDouble = 16,
  anycclComplex128 = 16,
  anycclNumTypes = 17
} anycclDataType_t;

/* Reductions, with the same bits on every CPU. Complex numbers have Sum, Prod and Avg, other
 * floating-point types also Max and Min, integers all, Bool all but Avg. Others are Unsupported.
 * - Avg is Sum, then one division by the number of ranks; of integers it is truncated.
 * - Integers wrap modulo 2^n. On Bool all are logical: Sum and Max are or, Prod and Min are and.
 * - 16- and 8-bit floating-point types are computed in float32 and rounded to nearest even, once
 *   for all sources that one step of the algorithm combines. What is too large becomes infinite or,
 *   as Float8e4m3 has no infinity, NaN.
 * - Max and Min are NaN if any element is, and -0 < +0. A NaN that was computed is always the same
 *   one: positive, quiet and without payload; 0x7f in 8 bits.
 * - A product of complex numbers is (ac - bd) + (ad + bc)i, also where infinities make that NaN. */
typedef enum {
  anycclSum = 0,
  anycclProd = 1,
  anycclMax = 2,
  anycclMin = 3,
  anycclAvg = 4,  /* See above; f16 and f8 add up in f32, but for ReduceScatterv. */
  anycclLand = 5, /* Logical and, or, exclusive or: of whether elements are not 0; 0 or 1. */
  anycclLor = 6,
  anycclLxor = 7,
  anycclBand = 8, /* And, or, exclusive or of each bit. */
  anycclBor = 9,
  anycclBxor = 10,
  anycclNumOps = 11,
  anycclMaxRedOp = 0x7fffffff /* Operators that programs create lie between. */
} anycclRedOp_t;

#define ANYCCL_UNIQUE_ID_BYTES 128
/* Lets ranks find and trust each other. Any process that has it can join: keep it secret. */
typedef struct {
  char internal[ANYCCL_UNIQUE_ID_BYTES];
} anycclUniqueId;

/* Version as major * 10000 + minor * 100 + patch. */
ANYCCL_API anycclResult_t anycclGetVersion(int* version);
/* A constant English sentence for `result`; never NULL. */
ANYCCL_API const char* anycclGetErrorString(anycclResult_t result);
/* The last error, mostly also InProgress, that a call with `comm` has told, or, with NULL, any call
 * of this thread; "" if none. anycclCommDestroy and anycclCommAbort tell theirs with NULL. Valid
 * until this thread asks for that of a communicator again (with NULL: until its next call). */
ANYCCL_API const char* anycclGetLastError(anycclComm_t comm);

/* ---- Communicators --------------------------------------------------------------------------- */

/* Makes an id for one new communicator and starts to listen for its ranks in this process, which
 * must live until all have joined. Errors: SystemError, InvalidArgument (environment), InvalidUsage
 * (another copy of the library is in use). */
ANYCCL_API anycclResult_t anycclGetUniqueId(anycclUniqueId* id);
/* Joins the communicator of `id` as `rank` of `nranks`; returns when all ranks have joined, or
 * fails after ANYCCL_TIMEOUT seconds naming the missing ranks. Inside a group one thread may create
 * several ranks; the handles are there after anycclGroupEnd. */
ANYCCL_API anycclResult_t anycclCommInitRank(anycclComm_t* comm, int nranks, anycclUniqueId id,
                                             int rank);
/* Creates all `ndev` ranks of a communicator in this process: comms[i] is rank i. `devlist` is
 * NULL, for 0..ndev-1, or has its own number for each: what anycclCommCuDevice says, as programs
 * want it; all are this host's memory. Use each from its own thread, or group the calls. */
ANYCCL_API anycclResult_t anycclCommInitAll(anycclComm_t* comms, int ndev, const int* devlist);
/* Joins the communicator that the launcher's environment describes: RANK, WORLD_SIZE, MASTER_ADDR,
 * MASTER_PORT (torchrun, `anyccl run`), or what mpirun, mpiexec or srun set, with ANYCCL_SECRET
 * where ranks run on several hosts (under mpirun and mpiexec MASTER_ADDR and MASTER_PORT, too). */
ANYCCL_API anycclResult_t anycclCommInitEnv(anycclComm_t* comm);

/* Color for ranks that take part in a split but join no communicator: *newcomm becomes NULL, or,
 * with blocking = 0, one that is finalized. */
#define ANYCCL_SPLIT_NOCOLOR (-1)
/* How a communicator is created. Start from ANYCCL_CONFIG_INITIALIZER and set what matters. The
 * fields have NCCL's names (up to 2.32), but not its order; those from `algo` on are this
 * library's. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking; /* 0: creating and finalizing return InProgress. Default 1, or the parent's. */
  const char* commName; /* In logs, dumps, traces and metrics; it is copied. A split has its
                         * parent's, or its own. */
  /* About device kernels, networks in hardware and shared resources. Host memory has none of them:
   * any value is accepted and changes nothing. */
  const char* netName;
  int cgaClusterSize, minCTAs, maxCTAs, splitShare, trafficClass, collnetEnable, CTAPolicy,
      shrinkShare, nvlsCTAs, nChannelsPerNetPeer, nvlinkCentricSched, graphUsageMode, numRmaCtx,
      maxP2pPeers, graphStreamOrdering, launchOrderImplicit, numRmaSig, rmaEagerInit, hostCftMode,
      nvlsHostMode;
  /* How collectives are done, equal on all ranks: those that differ fail here, and say in what.
   * Texts are copied. A split has its parent's, unless its own say something. What a variable of
   * the environment says comes first, as in NCCL, and what the configuration of a call says next.
   * - algo, proto: rules as ANYCCL_ALGO and ANYCCL_PROTO have them, "ring" or
   *   "all_reduce:LL128@-8K,Simple@8K-;broadcast:^LL". NULL or "": none.
   * - chunkBytes: a vector, or a block, goes in tiles of at most so many bytes (ANYCCL_CHUNK_SIZE),
   *   4096 to 1 GiB; at most two are under way at a time, over a network eight.
   * - buffSize: bytes of each rank's staging ring in shared memory (ANYCCL_BUFFSIZE), 65536 to 1
   *   GiB, and 12 KiB for each rank up to 1 MiB. */
  const char *algo, *proto;
  int chunkBytes, buffSize;
  /* The time limit of operations that have none of their own (timeout_ms of anycclCall_t), in
   * milliseconds; 0: none. Not set: what ANYCCL_OP_TIMEOUT says, or half an hour. May differ
   * between ranks. A split has its parent's, or its own. */
  int timeoutMs;
  /* The time limit of creating this communicator, also by split, shrink and grow, in ms, 1 to a
   * day. Not set: what ANYCCL_TIMEOUT says, or a minute; of anycclCommSplit and anycclCommGrow,
   * until all ranks have called them, the time limit of operations. A rank that does not call them
   * in time fails their `comm`. May differ between ranks. Those made of this one have their own. */
  int createTimeoutMs;
  /* The level of reproducibility, 0 to 3, equal on all ranks. 1, the default: the same bits in
   * every run with the same ranks, placement and settings. 2: each element of a sum is one function
   * of the ranks' elements, whatever the algorithm, the size of the call, its root or its group. 3:
   * that function depends on the number of ranks, type and operator alone. 0: no such promise.
   * The higher of this and ANYCCL_REPRODUCIBLE counts, and the configuration of a call may ask for
   * more. From 2 on operators that round use only algorithms that promise to add up by one tree;
   * a choice of others is refused, naming those. A split has its parent's, or its own. */
  int reproducible;
  /* Verification of results, equal on all ranks. 0: none. 1: of each collective; N: of each N-th.
   * Its ranks compare random sums or hashes of their inputs and results in an operation of its own.
   * A wrong result is anycclInternalError on the ranks that find it, with the operation, ranks and
   * often elements, and fails the communicator. Barriers have no check, and Prod, but of Bool,
   * averages of integers and functions of programs are InvalidUsage then; see docs/numbers. Not
   * set: what ANYCCL_VERIFY says, or none. A split has its parent's, or its own. */
  int verify;
  /* 1: a call returns when its result is there, and a later call or anycclCommGetAsyncError returns
   * what its verification finds, after the result may have been used. 0, the default: a call
   * returns when its result is verified. Equal on all ranks. */
  int verifyLater;
  /* 1: when the communicator is there, its ranks do what anycclCommUseDeviceQueues does, if they
   * can. 0: they do not. Equal on all ranks. Not set: what ANYCCL_DEVICE_QUEUES says, or 0. A split
   * has its parent's, or its own. */
  int deviceQueues;
} anycclConfig_t;
#define ANYCCL_CONFIG_UNDEF_INT (-2147483647 - 1)
#define ANYCCL_CONFIG_UNDEF_PTR NULL
#define ANYCCL_CONFIG_INITIALIZER                                                    \
  {                                                                                  \
    sizeof(anycclConfig_t), 0xa11cc1u, ANYCCL_VERSION_CODE, ANYCCL_CONFIG_UNDEF_INT, \
        ANYCCL_CONFIG_UNDEF_PTR, ANYCCL_CONFIG_UNDEF_PTR, ANYCCL_CONFIG_UNDEF_INT,   \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT,   \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT,   \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT,   \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT,   \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT,   \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT,   \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_PTR, ANYCCL_CONFIG_UNDEF_PTR,   \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT,   \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT,   \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT                             \
  }
/* anycclCommInitRank with a configuration; NULL: the default. With blocking = 0 it returns
 * InProgress at once, also inside a group; anycclCommGetAsyncError says InProgress until `*comm`
 * can be used, or why it cannot. Until then nothing else but destroying and aborting is allowed. */
ANYCCL_API anycclResult_t anycclCommInitRankConfig(anycclComm_t* comm, int nranks,
                                                   anycclUniqueId id, int rank,
                                                   anycclConfig_t* config);
/* anycclCommInitRankConfig with several ids, as large jobs have them; `ids` has `nids` of them, the
 * same on all ranks. All ranks meet at the first one. */
ANYCCL_API anycclResult_t anycclCommInitRankScalable(anycclComm_t* comm, int nranks, int rank,
                                                     int nids, anycclUniqueId* ids,
                                                     anycclConfig_t* config);
/* anycclCommInitEnv with a configuration; NULL: the default. With blocking = 0 it returns
 * InProgress at once; otherwise all ranks have joined when it returns, also inside a group. */
ANYCCL_API anycclResult_t anycclCommInitEnvConfig(anycclComm_t* comm, anycclConfig_t* config);
/* Collective over `comm`: ranks with the same `color` (>= 0) form a new communicator, ordered by
 * (key, old rank). `config`: as for anycclCommInitRankConfig; `blocking` defaults to `comm`'s. With
 * 0 `comm` is InProgress until the new one is ready (finalized after _NOCOLOR). An argument
 * wrong on one rank is an error on all, and `comm` goes on; a rank that fails while the new one is
 * made (no descriptors left, a peer died or aborted `comm`) aborts `comm`: all others hear why. In
 * a group the new ones are there after anycclGroupEnd, so one thread may split several ranks. */
ANYCCL_API anycclResult_t anycclCommSplit(anycclComm_t comm, int color, int key,
                                          anycclComm_t* newcomm, anycclConfig_t* config);
#define ANYCCL_SHRINK_DEFAULT 0x00
#define ANYCCL_SHRINK_ABORT 0x01
/* Makes a communicator of the ranks of `comm` that are not in excludeRanksList, in their order.
 * These ranks make the call, with lists of the same ranks, and the others do not; `comm` has not
 * failed. No operation of `comm` is open. `comm` stays as it is. `config`, groups: as for
 * anycclCommSplit. Errors: a rank in the list that is none of `comm`, or the caller, on this rank
 * alone; other arguments that one rank has wrong, on all that call; RemoteError naming two ranks,
 * or Timeout, where their lists differ; a rank that does not come within ANYCCL_TIMEOUT (or
 * createTimeoutMs) fails `comm`, and so does one that makes the call and is left out by all others.
 * With ANYCCL_SHRINK_ABORT the ranks left carry on after a failure: what runs on `comm` ends with
 * Aborted on all of them, unless it has failed already, and `comm` runs nothing afterwards: it can
 * be shrunk so again, destroyed or aborted. The ranks that make the call agree who is left: all but
 * those that have died, or have destroyed or aborted `comm`, and those in the list of any of them.
 * Lists may differ, and name ranks that live, such as a stopped one; a rank that others leave out
 * gets RemoteError if it hears of that. Ranks may die meanwhile. Nothing of `comm` reaches the new
 * one, which can be shrunk so, too. Errors: Timeout after the same time, naming ranks that live and
 * do not come: it may be repeated, also with these in the list; RemoteError, naming a rank that
 * cannot take part and why, on all ranks, but that rank may return an error of its own. */
ANYCCL_API anycclResult_t anycclCommShrink(anycclComm_t comm, int* excludeRanksList,
                                           int excludeRanksCount, anycclComm_t* newcomm,
                                           anycclConfig_t* config, int shrinkFlags);
/* *here = how many collectives of `comm` have completed at this rank, in the order of calls; a
 * group that travels as one counts as one, and splitting or growing `comm`, its parts, windows and
 * routings and coded calls have some, too. *everywhere = how many have at all that are left,
 * once they have shrunk `comm` with ANYCCL_SHRINK_ABORT; 0 before. A program that notes *here after
 * each step finds the last that all have done. Also after `comm` has failed. Either may be NULL. */
ANYCCL_API anycclResult_t anycclCommCompleted(anycclComm_t comm, uint64_t* here,
                                              uint64_t* everywhere);
/* Who is left: *count = how many ranks the communicator has that the last shrink of `comm` with
 * ANYCCL_SHRINK_ABORT made, and ranks[i] = the rank in `comm` of its rank i. `ranks` has room for
 * all of `comm`, or is NULL. All that are left get the same. Errors: InvalidUsage before that. */
ANYCCL_API anycclResult_t anycclCommSurvivors(anycclComm_t comm, int* ranks, int* count);
/* An id for anycclCommGrow, made by one rank of `comm`. */
ANYCCL_API anycclResult_t anycclCommGetUniqueId(anycclComm_t comm, anycclUniqueId* id);
/* Makes a communicator of `nranks` ranks: those of `comm`, with the numbers they have there, and
 * new ones behind them. Ranks of `comm` pass it and `rank` -1, and one of them the `id`, the others
 * NULL; new ranks pass `comm` NULL, the id, which the program has brought to them, and their rank.
 * `comm` stays as it is. Returns when all have joined. `config`, groups: as for anycclCommSplit.
 * Errors: an argument that one rank of `comm` has wrong is an error on all of them. */
ANYCCL_API anycclResult_t anycclCommGrow(anycclComm_t comm, int nranks, const anycclUniqueId* id,
                                         int rank, anycclComm_t* newcomm, anycclConfig_t* config);
#define ANYCCL_REVOKE_DEFAULT 0x00
/* Makes all ranks' operations on `comm` fail with Aborted and the name of this rank, unless it has
 * failed before. Never waits for a peer. Then it is shrunk with ANYCCL_SHRINK_ABORT, or ended. */
ANYCCL_API anycclResult_t anycclCommRevoke(anycclComm_t comm, int revokeFlags);
/* Makes `comm` ready for anycclAllReducePart by up to `threads` (1..1024) threads of each rank.
 * Collective over `comm`: one thread of each rank calls it, with the same number. Every thread but
 * the first gets a communicator inside `comm`, with memory of its own, so call it once, before the
 * work begins. Asking for fewer later changes nothing, for more adds the missing ones; no thread
 * may be in anycclAllReducePart meanwhile. Errors: InvalidUsage, naming two ranks, where numbers
 * differ, and `comm` is as before; those of a split. Not in a group. */
ANYCCL_API anycclResult_t anycclCommParts(anycclComm_t comm, int threads);
/* Completes what was issued and says goodbye to the other ranks; then the communicator can only be
 * destroyed or aborted. Inside a group: at its end. If it is not blocking: returns InProgress, and
 * anycclCommGetAsyncError says so until it is done. Errors: InvalidUsage, also where another thread
 * was faster, or calls of this rank differed from those of its peers. */
ANYCCL_API anycclResult_t anycclCommFinalize(anycclComm_t comm);
/* anycclCommFinalize within `timeout_ms`; 0: no limit of its own. What is open then is given up
 * with Timeout: waits for signals, and receives of which nothing has come, only here, so that
 * others go on until they need this rank; all else on all ranks. It is finalized in each case. */
ANYCCL_API anycclResult_t anycclCommFinalizeFor(anycclComm_t comm, unsigned int timeout_ms);
/* Frees the communicator after its issued operations, also those in streams, are complete. NULL is
 * allowed. Errors: InvalidUsage where another thread ends it, or, though it is freed, calls of this
 * rank differed from those of its peers. */
ANYCCL_API anycclResult_t anycclCommDestroy(anycclComm_t comm);
/* Makes all ranks' operations on the communicator fail, then frees this rank's handle. Never waits
 * for a peer. Another thread that waits in a call on `comm` returns Aborted, and does so first, if
 * that takes no longer than 100 ms; anycclCommFinalize and anycclCommDestroy return Success. */
ANYCCL_API anycclResult_t anycclCommAbort(anycclComm_t comm);
/* *error = Success, why it failed, or InProgress (anycclCommInitRankConfig, anycclCommSplit). */
ANYCCL_API anycclResult_t anycclCommGetAsyncError(anycclComm_t comm, anycclResult_t* error);
ANYCCL_API anycclResult_t anycclCommCount(anycclComm_t comm, int* count);
ANYCCL_API anycclResult_t anycclCommUserRank(anycclComm_t comm, int* rank);
/* *timeout_ms = the limit of operations without one of their own; 0: none. */
ANYCCL_API anycclResult_t anycclCommGetTimeout(anycclComm_t comm, unsigned int* timeout_ms);
/* The number of the device, as anycclCommInitAll was given it, or of its device; else 0. */
ANYCCL_API anycclResult_t anycclCommCuDevice(anycclComm_t comm, int* device);
typedef enum {
  anycclStatGpuMemSuspend = 0,   /* What anycclCommSuspend could give back: 0. */
  anycclStatGpuMemSuspended = 1, /* Whether it is given back: 0. */
  anycclStatGpuMemPersist = 2,   /* What the communicator holds. */
  anycclStatGpuMemTotal = 3      /* What it holds, too. */
} anycclCommMemStat_t;
/* *value = bytes of host memory that this rank holds for `comm`: what its peers can map, buffers
 * and scratch, which is less again when unused. Without plans, the library's own objects, packed
 * calls of groups, queues of messages and sockets, anycclMemAlloc, slices of anycclCommParts. */
ANYCCL_API anycclResult_t anycclCommMemStats(anycclComm_t comm, anycclCommMemStat_t stat,
                                             uint64_t* value);
/* How the last collective ran, for people: "all_reduce/two_shot Simple shm" (algorithm, protocol,
 * transports, ", 4 calls as one" if they travel so, ", level 3" if its level of reproducibility is
 * not 1, ", tag 7": see userProfilerTag). Also one of a split; not AllToAllw, of messages.
 * The protocol says where the largest publication lies in shared memory: LL, in the cache line of
 * its sequence word; LL128, in the slot of that word, up to 33 lines; Simple, in the staging ring
 * or where the caller has it. Among ranks that share no memory it is mostly "-". The text is ""
 * before the first collective. Valid until this thread asks again. */
ANYCCL_API anycclResult_t anycclCommLastPlan(anycclComm_t comm, const char** text);

/* Writes what this rank remembers of its last operations (ANYCCL_RECORD), and for whom it waits
 * now, to the file `path` as JSON: `anyccl blame` compares those of all ranks. With ANYCCL_TRACE
 * the rank's trace is written, too. Of a team (anycclCommParts) the file has the slices of all
 * threads. A plain file of that name is replaced. Also while another thread waits in a call of
 * `comm`, which goes on while the file is written, and after `comm` has failed; never waits for a
 * peer. Errors: SystemError, when the file cannot be written, or `path` is a link or a device. */
ANYCCL_API anycclResult_t anycclCommDump(anycclComm_t comm, const char* path);
/* *text = what this rank has done in `comm` so far, as JSON: calls, bytes, time and failures of
 * each operation, algorithm and protocol, and the memory that it holds (docs/observe/metrics.md).
 * Counts nothing with ANYCCL_RECORD=0. Any thread, also while another one waits in a call of
 * `comm`, and after it has failed. Valid until this thread asks again, of any comm, or ends. */
ANYCCL_API anycclResult_t anycclCommMetrics(anycclComm_t comm, const char** text);
/* *text = what all communicators of the process have done, also those that have ended, in the text
 * format of Prometheus. With ANYCCL_METRICS a file is written with it each 5 s. */
ANYCCL_API anycclResult_t anycclMetrics(const char** text);

/* Adds algorithms that files describe (docs/own-algorithms.md) to those that ANYCCL_ALGO,
 * config->algo and config->algSelection can name, while the process lives. `path`: files, or
 * folders whose *.json are read, as ANYCCL_ALGO_PATH has them: "mine.json:/opt/algorithms". All
 * ranks must have loaded the same before they create a communicator, which compares them. An
 * algorithm is checked at its first use, for the ranks and hosts of that communicator; a call that
 * it fails for says what is wrong. Known ones are not added again. Any thread. Errors:
 * InvalidArgument, naming file and place, also for another algorithm's name; SystemError. */
ANYCCL_API anycclResult_t anycclLoadAlgorithms(const char* path);

/* ---- Operators of your own ------------------------------------------------------------------- */

typedef enum {
  anycclScalarDevice = 0,        /* Read as operations start; must live until the last is over. */
  anycclScalarHostImmediate = 1, /* Read now. */
} anycclScalarResidence_t;
/* Makes an operator for `comm`: each rank's input times its `*scalar`, of `datatype`, is summed.
 * The product is rounded to `datatype` before the sum. Calls must be of the same datatype, and all
 * ranks must use such an operator; their scalars may differ. Not of Bool. */
ANYCCL_API anycclResult_t anycclRedOpCreatePreMulSum(anycclRedOp_t* op, void* scalar,
                                                     anycclDataType_t datatype,
                                                     anycclScalarResidence_t residence,
                                                     anycclComm_t comm);
/* inout[i] = inout[i] op in[i] for i < count. Must be associative and commutative, also in its last
 * bit where all ranks are to get the same, below level 2 of reproducibility. Comes from whichever
 * thread makes progress. It must not throw, and must not call anyccl but for anycclReduceLocal with
 * `comm` NULL: its thread would wait for itself. Most other calls are refused as InvalidUsage, and
 * some never return. The two do not overlap; either may have any alignment. */
typedef void (*anycclReduceFunction_t)(const void* in, void* inout, size_t count,
                                       anycclDataType_t datatype, void* userdata);
/* Makes an operator for `comm` that calls `function` with `userdata`, whatever the datatype. */
ANYCCL_API anycclResult_t anycclRedOpCreate(anycclRedOp_t* op, anycclReduceFunction_t function,
                                            void* userdata, anycclComm_t comm);
/* Makes MPI's MAXLOC (which = anycclMax) or MINLOC (anycclMin) for `comm`: each element of a call
 * is a value with an index behind it, and the result is the largest or least value with the least
 * index that has it; a NaN wins. Float32 and Int32 have int32_t indices, in calls of anycclUint64;
 * Float64 and Int64 have int64_t ones, in calls of anycclComplexDouble, which is as large. */
ANYCCL_API anycclResult_t anycclRedOpCreateLoc(anycclRedOp_t* op, anycclRedOp_t which,
                                               anycclDataType_t value, anycclComm_t comm);
/* inout[i] = in[i] op inout[i], i < count, in this process alone and with the bits that collectives
 * have. `comm` is for operators of its own, and may be NULL for the others; not Avg, and not a
 * pre-multiplied sum. The two do not overlap. */
ANYCCL_API anycclResult_t anycclReduceLocal(const void* in, void* inout, size_t count,
                                            anycclDataType_t datatype, anycclRedOp_t op,
                                            anycclComm_t comm);
/* Operations that use it and were issued before still complete. */
ANYCCL_API anycclResult_t anycclRedOpDestroy(anycclRedOp_t op, anycclComm_t comm);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Memory (64 byte aligned, of undefined contents) that local peers can read where it lies:
 * operations on it copy less. For small and large blocks; the system gets regions of some MiB back.
 * What a forked child writes is its own; pages it has not written show what its parent writes. */
ANYCCL_API anycclResult_t anycclMemAlloc(void** ptr, size_t size);
/* Frees it; no operation may be using it. NULL is allowed. */
ANYCCL_API anycclResult_t anycclMemFree(void* ptr);
/* Makes memory of the program's own such memory: the `size` bytes at `ptr`, which it has mapped
 * with MAP_SHARED from `offset` on of a memfd. Local peers get to map the memfd, so it must be
 * sealed with F_SEAL_SHRINK and F_SEAL_FUTURE_WRITE before; its pages should exist. The descriptor
 * may be closed afterwards. In a forked child it is not registered. Errors: anycclInvalidArgument
 * if it is no such mapping, or overlaps one that is registered. Threads: any. */
ANYCCL_API anycclResult_t anycclMemRegister(void* ptr, size_t size, int fd, size_t offset);
/* Before the program unmaps it or uses it for something else; no operation may be using it. */
ANYCCL_API anycclResult_t anycclMemDeregister(void* ptr);
/* Tells that operations of `comm` will use the `size` bytes at `buff` again and again, until the
 * handle is given back. Nothing gains from this hint yet (see anycclMemAlloc and anycclMemRegister
 * for what does): it is here so that programs port. */
ANYCCL_API anycclResult_t anycclCommRegister(anycclComm_t comm, void* buff, size_t size,
                                             void** handle);
ANYCCL_API anycclResult_t anycclCommDeregister(anycclComm_t comm, void* handle);

/* ---- Collectives ----------------------------------------------------------------------------- */

/* recvbuff[i] = op over all ranks of sendbuff[i], i < count, on every rank, bitwise equal on all.
 * In place: sendbuff == recvbuff. `count`, `datatype` and `op` are equal on all ranks. */
ANYCCL_API anycclResult_t anycclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                          anycclDataType_t datatype, anycclRedOp_t op,
                                          anycclComm_t comm, anycclStream_t stream);
/* anycclAllReduce by a team of `threads` threads in each rank, inside the program's own parallel
 * region: each of them calls it, with its number `thread` in 0..threads-1 and else equal arguments,
 * and reduces one slice of the vector with the threads of the same number. It returns when that
 * slice is complete at this rank. The result is there, and the buffers may be used again, when the
 * whole team has returned: the caller's barrier comes behind it.
 * - Slices are consecutive, cut at multiples of 64 bytes, and have some 8 KiB or more, the last one
 *   what is left: of a small vector the first threads have all, and the others return at once.
 * - `threads` is equal on all ranks and at most what anycclCommParts was called with (1 needs no
 *   call); it may change from call to call. Not in a group, not in a stream.
 * - Threads share no writes or locks, but for operators of `comm`. One team at a time on `comm`;
 *   but a thread need not wait for others before its next call, if that has other buffers.
 * - Order: on `comm` it is one collective, that of thread 0. The slices of the others do not wait
 *   for what was issued on `comm` before.
 * - Result: bitwise equal on all ranks, and between runs with the same number of threads. Of up to
 *   8 ranks in shared memory it is also that of anycclAllReduce, unless a variable, configuration
 *   or table names its algorithm, and always from level 2 of reproducibility on.
 * - Operators of `comm` may be used; a function may then be called by several threads at once.
 * - Errors: as anycclAllReduce; anycclGetLastError(NULL) has the calling thread's. One that `comm`
 *   does not survive (a rank that died, an abort, ranks or threads that call with other arguments)
 *   is returned to every thread of the team that has not returned, on all ranks, and to all that
 *   call later. But threads of one rank are not compared: what they do wrong alike on all ranks is
 *   not noticed. anycclCommAbort frees the handle, so it comes when no thread is still to call. */
ANYCCL_API anycclResult_t anycclAllReducePart(const void* sendbuff, void* recvbuff, size_t count,
                                              anycclDataType_t datatype, anycclRedOp_t op,
                                              anycclComm_t comm, int thread, int threads);
/* recvbuff on every rank = sendbuff of rank `root` (sendbuff is read only there). In place at the
 * root: sendbuff == recvbuff. */
ANYCCL_API anycclResult_t anycclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                          anycclDataType_t datatype, int root, anycclComm_t comm,
                                          anycclStream_t stream);
/* anycclBroadcast in place on every rank. */
ANYCCL_API anycclResult_t anycclBcast(void* buff, size_t count, anycclDataType_t datatype, int root,
                                      anycclComm_t comm, anycclStream_t stream);
/* recvbuff of rank `root` = op over all ranks of sendbuff (recvbuff is used only there). In place
 * at the root: sendbuff == recvbuff. */
ANYCCL_API anycclResult_t anycclReduce(const void* sendbuff, void* recvbuff, size_t count,
                                       anycclDataType_t datatype, anycclRedOp_t op, int root,
                                       anycclComm_t comm, anycclStream_t stream);
/* sendbuff has a block of `recvcount` elements for each rank; recvbuff, one block, becomes op over
 * all ranks' blocks for this one. In place: recvbuff == sendbuff + rank * recvcount. */
ANYCCL_API anycclResult_t anycclReduceScatter(const void* sendbuff, void* recvbuff,
                                              size_t recvcount, anycclDataType_t datatype,
                                              anycclRedOp_t op, anycclComm_t comm,
                                              anycclStream_t stream);
/* recvbuff gets every rank's sendbuff of `sendcount` elements, in rank order, on every rank. In
 * place: sendbuff == recvbuff + rank * sendcount. */
ANYCCL_API anycclResult_t anycclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                          anycclDataType_t datatype, anycclComm_t comm,
                                          anycclStream_t stream);
/* recvbuff of rank `root` gets every rank's sendbuff of `count` elements, in rank order (recvbuff
 * is used only there). In place at the root: sendbuff == recvbuff + root * count. */
ANYCCL_API anycclResult_t anycclGather(const void* sendbuff, void* recvbuff, size_t count,
                                       anycclDataType_t datatype, int root, anycclComm_t comm,
                                       anycclStream_t stream);
/* recvbuff of rank j, `count` elements, = block j of sendbuff of rank `root` (sendbuff is used only
 * there). In place at the root: recvbuff == sendbuff + root * count. */
ANYCCL_API anycclResult_t anycclScatter(const void* sendbuff, void* recvbuff, size_t count,
                                        anycclDataType_t datatype, int root, anycclComm_t comm,
                                        anycclStream_t stream);
/* recvbuff[i] = op over the sendbuff[i] of the ranks up to and with this one, i < count: MPI's
 * inclusive prefix reduction. In place: sendbuff == recvbuff. `count`, `datatype` and `op` are
 * equal on all ranks; all operators but Avg. */
ANYCCL_API anycclResult_t anycclScan(const void* sendbuff, void* recvbuff, size_t count,
                                     anycclDataType_t datatype, anycclRedOp_t op, anycclComm_t comm,
                                     anycclStream_t stream);
/* anycclScan over the ranks before this one. recvbuff of rank 0 is not used. */
ANYCCL_API anycclResult_t anycclExscan(const void* sendbuff, void* recvbuff, size_t count,
                                       anycclDataType_t datatype, anycclRedOp_t op,
                                       anycclComm_t comm, anycclStream_t stream);
/* Block j of sendbuff goes to rank j; block i of recvbuff comes from rank i; `count` elements each.
 * In place: sendbuff == recvbuff. anycclAlltoAll is NCCL's spelling. */
ANYCCL_API anycclResult_t anycclAllToAll(const void* sendbuff, void* recvbuff, size_t count,
                                         anycclDataType_t datatype, anycclComm_t comm,
                                         anycclStream_t stream);
ANYCCL_API anycclResult_t anycclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                                         anycclDataType_t datatype, anycclComm_t comm,
                                         anycclStream_t stream);
/* Sends sendcounts[j] elements from sendbuff + sdispls[j] to rank j and receives recvcounts[j] from
 * it at recvbuff + rdispls[j], for all j. Arrays have an entry per rank, in elements; sendcounts[j]
 * at rank i equals recvcounts[i] at rank j. Received blocks do not overlap. Not in place. */
ANYCCL_API anycclResult_t anycclAllToAllv(const void* sendbuff, const size_t sendcounts[],
                                          const size_t sdispls[], void* recvbuff,
                                          const size_t recvcounts[], const size_t rdispls[],
                                          anycclDataType_t datatype, anycclComm_t comm,
                                          anycclStream_t stream);

/* anycclAllToAllv with a datatype for each pair, equal at both ends, and offsets in bytes: MPI's.
 * Runs as messages between the pairs that exchange anything; also in a group. */
ANYCCL_API anycclResult_t anycclAllToAllw(const void* sendbuff, const size_t sendcounts[],
                                          const size_t sdispls[],
                                          const anycclDataType_t sendtypes[], void* recvbuff,
                                          const size_t recvcounts[], const size_t rdispls[],
                                          const anycclDataType_t recvtypes[], anycclComm_t comm,
                                          anycclStream_t stream);

/* Blocks of different sizes. Arrays have one entry per rank, counts and offsets into the buffer, in
 * elements; blocks may lie apart and in any order, but received ones must not overlap. Where only
 * the root uses an array, the others may pass NULL. */

/* recvbuff + rdispls[r] gets the sendbuff of rank r, of recvcounts[r] elements, on every rank.
 * recvcounts are equal on all ranks; sendcount == recvcounts[rank]. In place: sendbuff == recvbuff
 * + rdispls[rank]. */
ANYCCL_API anycclResult_t anycclAllGatherv(const void* sendbuff, size_t sendcount, void* recvbuff,
                                           const size_t recvcounts[], const size_t rdispls[],
                                           anycclDataType_t datatype, anycclComm_t comm,
                                           anycclStream_t stream);
/* recvbuff = op over all ranks of their block for this rank, sendcounts[rank] elements at sendbuff
 * + sdispls[rank]. sendcounts are equal on all ranks; recvcount == sendcounts[rank]. In place:
 * recvbuff == sendbuff + sdispls[rank]. */
ANYCCL_API anycclResult_t anycclReduceScatterv(const void* sendbuff, const size_t sendcounts[],
                                               const size_t sdispls[], void* recvbuff,
                                               size_t recvcount, anycclDataType_t datatype,
                                               anycclRedOp_t op, anycclComm_t comm,
                                               anycclStream_t stream);
/* recvbuff + rdispls[r] of `root` gets the sendbuff of rank r, whose sendcount is recvcounts[r]; it
 * and the arrays are used only there. In place there: sendbuff == recvbuff + rdispls[root]. */
ANYCCL_API anycclResult_t anycclGatherv(const void* sendbuff, size_t sendcount, void* recvbuff,
                                        const size_t recvcounts[], const size_t rdispls[],
                                        anycclDataType_t datatype, int root, anycclComm_t comm,
                                        anycclStream_t stream);
/* recvbuff of rank r, recvcount elements, = the sendcounts[r] elements at sendbuff + sdispls[r] of
 * `root`; it and the arrays are used only there. In place there: recvbuff == sendbuff +
 * sdispls[root]. */
ANYCCL_API anycclResult_t anycclScatterv(const void* sendbuff, const size_t sendcounts[],
                                         const size_t sdispls[], void* recvbuff, size_t recvcount,
                                         anycclDataType_t datatype, int root, anycclComm_t comm,
                                         anycclStream_t stream);
/* Is complete when all ranks have called it, and their streams have come to it. */
ANYCCL_API anycclResult_t anycclBarrier(anycclComm_t comm, anycclStream_t stream);

/* How one call is done, as NCCL 2.31 has it. Start from ANYCCL_COLLCONFIG_INITIALIZER, and set what
 * matters. Equal on all ranks, but for the tag: calls that come to other plans are an error on all
 * ranks, as other mismatched calls are. What the environment says comes before it, what the
 * communicator's configuration says after it. It is read during the call. A communicator may see up
 * to 63 that differ in the fields with an effect; the tag is none of them. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  void* ext; /* Extensions of other libraries; not read. */
  /* About device kernels: any value is accepted and changes nothing. */
  int minCTAs, maxCTAs, nvlsCTAs, cgaClusterSize;
  /* Rules as ANYCCL_ALGO has them, names of this library: "ring", "two_shot,ring" (the first that
   * these ranks can do), "^flat". NULL or "": any. */
  const char* algSelection;
  int forceAlgSelection;    /* 1: what cannot be done is an error; 0: it is chosen without this. */
  int CTAPolicy;            /* Changes nothing. */
  uint64_t userProfilerTag; /* In the log's lines on the call (ANYCCL_DEBUG=INFO: when its plan is
                             * made; TRACE: each call, or as it is prepared). Also in
                             * anycclCommLastPlan: the last one of configurations alike. 0: none. */
  const char* proto; /* Rules as ANYCCL_PROTO has them. This library's, as are all that follow. */
  int chunkBytes;    /* A vector or block goes in tiles of at most so many bytes: 4096 to 1 GiB. */
  int reproducible;  /* The level, if higher than that of the communicator: see anycclConfig_t. */
  /* AllReduce, Reduce and ReduceScatter: the anycclDataType_t of recvbuff, if not that of the call,
   * and the one in which elements are added up and partial sums travel, so that they are rounded
   * once, into recvbuff. 16- and 8-bit floats have Float32, Float32 has Float64, integers have
   * wider ones of their kind. A result may be a narrower float than the sum (of f64: f32). In place
   * only if input and result are of one size. With Float32 alone for sums of 16- or 8-bit floats,
   * algorithms that add up in one step stay: they round once. Not for operators of programs. */
  int outputType, accumulateType;
  /* AllReduce, Reduce and ReduceScatter: the sum is of so many parts, the leaves, not of one for
   * each rank: 1 to 4096, a power of two times the number of ranks. Sendbuff has leaves / nranks of
   * them, one after the other, each as long as sendbuff is without this; those of rank 0 come
   * first. At level 3 at least, and sums of Float16 and Bfloat16 are of Float32, so that a result
   * is a function of the leaves: the same bits for other numbers of ranks. Averages are divided by
   * the number of leaves. In place: as without this, in the first part. Not for operators of
   * programs, and not for floats of 8 bits, unless `accumulateType` or `outputType` is Float32. */
  int leaves;
} anycclCollConfig_t;
#define ANYCCL_COLLCONFIG_INITIALIZER                                                     \
  {                                                                                       \
    sizeof(anycclCollConfig_t), 0xa11cc2u, ANYCCL_VERSION_CODE, ANYCCL_CONFIG_UNDEF_PTR,  \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT,        \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_PTR, 1, ANYCCL_CONFIG_UNDEF_INT, 0u, \
        ANYCCL_CONFIG_UNDEF_PTR, ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT,        \
        ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT, ANYCCL_CONFIG_UNDEF_INT         \
  }
/* The functions of these names, with a configuration; NULL: as without. Errors: InvalidArgument,
 * naming the field and its value; Unsupported, if the ranks cannot do what it names. For other
 * collectives anycclCall_t has one. */
ANYCCL_API anycclResult_t anycclAllReduceConfig(const void* sendbuff, void* recvbuff, size_t count,
                                                anycclDataType_t datatype, anycclRedOp_t op,
                                                anycclComm_t comm, anycclStream_t stream,
                                                const anycclCollConfig_t* config);
ANYCCL_API anycclResult_t anycclBroadcastConfig(const void* sendbuff, void* recvbuff, size_t count,
                                                anycclDataType_t datatype, int root,
                                                anycclComm_t comm, anycclStream_t stream,
                                                const anycclCollConfig_t* config);
ANYCCL_API anycclResult_t anycclReduceConfig(const void* sendbuff, void* recvbuff, size_t count,
                                             anycclDataType_t datatype, anycclRedOp_t op, int root,
                                             anycclComm_t comm, anycclStream_t stream,
                                             const anycclCollConfig_t* config);
ANYCCL_API anycclResult_t anycclReduceScatterConfig(const void* sendbuff, void* recvbuff,
                                                    size_t recvcount, anycclDataType_t datatype,
                                                    anycclRedOp_t op, anycclComm_t comm,
                                                    anycclStream_t stream,
                                                    const anycclCollConfig_t* config);
ANYCCL_API anycclResult_t anycclAllGatherConfig(const void* sendbuff, void* recvbuff,
                                                size_t sendcount, anycclDataType_t datatype,
                                                anycclComm_t comm, anycclStream_t stream,
                                                const anycclCollConfig_t* config);
ANYCCL_API anycclResult_t anycclAllToAllConfig(const void* sendbuff, void* recvbuff, size_t count,
                                               anycclDataType_t datatype, anycclComm_t comm,
                                               anycclStream_t stream,
                                               const anycclCollConfig_t* config);
#define anycclAlltoAllConfig anycclAllToAllConfig /* NCCL's spelling */
ANYCCL_API anycclResult_t anycclGatherConfig(const void* sendbuff, void* recvbuff, size_t count,
                                             anycclDataType_t datatype, int root, anycclComm_t comm,
                                             anycclStream_t stream,
                                             const anycclCollConfig_t* config);
ANYCCL_API anycclResult_t anycclScatterConfig(const void* sendbuff, void* recvbuff, size_t count,
                                              anycclDataType_t datatype, int root,
                                              anycclComm_t comm, anycclStream_t stream,
                                              const anycclCollConfig_t* config);

/* ---- Point to point -------------------------------------------------------------------------- */

/* Messages between two ranks match in order; `count` and `datatype` are equal on both sides. A call
 * may return before the receiver has posted its receive. To exchange, group the calls. These have
 * tag 0; see anycclCall_t for others. A `peer` of anycclRecv may be ANYCCL_ANY_SOURCE. */
ANYCCL_API anycclResult_t anycclSend(const void* sendbuff, size_t count, anycclDataType_t datatype,
                                     int peer, anycclComm_t comm, anycclStream_t stream);
ANYCCL_API anycclResult_t anycclRecv(void* recvbuff, size_t count, anycclDataType_t datatype,
                                     int peer, anycclComm_t comm, anycclStream_t stream);
/* anycclSend that is complete only when the message has met its receive, so that the receiver is
 * known to have come that far: MPI's synchronous send. Costs an answer of the receiver. */
ANYCCL_API anycclResult_t anycclSsend(const void* sendbuff, size_t count, anycclDataType_t datatype,
                                      int peer, anycclComm_t comm, anycclStream_t stream);
/* A message that has come and was not received yet. */
typedef struct {
  int source, tag;
  anycclDataType_t datatype;
  size_t count; /* Elements. */
} anycclMessage_t;
/* Returns when there is a message from `source` (or ANYCCL_ANY_SOURCE) with `tag` that a receive
 * called now would get, and says which in *message. It stays: the next receive of this rank from
 * that source with that tag gets just it. Receives called before come first. Earlier messages are
 * kept in memory. Not in a group. Errors: as a receive, such as of a gone peer. */
ANYCCL_API anycclResult_t anycclProbe(int source, int tag, anycclComm_t comm,
                                      anycclMessage_t* message);
/* anycclProbe, but InProgress if there is none after `timeout_ms`. */
ANYCCL_API anycclResult_t anycclProbeFor(int source, int tag, anycclComm_t comm,
                                         unsigned int timeout_ms, anycclMessage_t* message);
/* anycclProbe without waiting: *flag = 1 if there is one, else 0. Makes progress, so that a message
 * is found if it is asked for again and again. */
ANYCCL_API anycclResult_t anycclIprobe(int source, int tag, anycclComm_t comm, int* flag,
                                       anycclMessage_t* message);

/* Issues the receive of the next message with source and tag of `message`, which a probe has found,
 * if it has its type and size, too. *work: as of anycclIssue(), else NULL. Not in a group. */
ANYCCL_API anycclResult_t anycclRecvFound(void* recvbuff, const anycclMessage_t* message,
                                          anycclComm_t comm, anycclWork_t* work);

/* ---- Groups ---------------------------------------------------------------------------------- */

/* Calls of this thread between Start and End are issued together at the outermost End, which
 * returns when all without a stream are complete: sends and receives between them, also of several
 * communicators or ranks in this thread, cannot wait for each other. Those with streams go to the
 * end of these, which no other thread may use meanwhile, and all of one stream start together when
 * it comes to them. Small collectives in a row in one communicator travel as one, if collective,
 * datatype, operator, root and configuration are the same, the operator is the library's, and the
 * results have the same bits that way; but not Reduce, Exscan, barriers, those with blocks of
 * different sizes or leaves, those whose sums or results are of another type than inputs, and none
 * with verification. So a group's calls are the same on all ranks, messages aside, and one that
 * reads what an earlier one writes does so on all ranks or only at its root (ANYCCL_FUSION=0 lifts
 * both). Not for calls on streams and events, nor for anycclIssue and such, which begin at once.
 * anycclGroupEnd returns the first error of a call in it; then nothing was started. Buffers and
 * counts are checked at its end: right calls run, unless a new window or communicator failed. */
ANYCCL_API anycclResult_t anycclGroupStart(void);
ANYCCL_API anycclResult_t anycclGroupEnd(void);

/* What anycclGroupSimulateEnd says. Start from ANYCCL_SIM_INFO_INITIALIZER. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime; /* Microseconds. */
} anycclSimInfo_t;
#define ANYCCL_SIM_INFO_INITIALIZER \
  { sizeof(anycclSimInfo_t), 0xa11cc1u, ANYCCL_VERSION_CODE, 0.0f }
/* In place of anycclGroupEnd: runs nothing, and says how long the group's collectives should take,
 * by the model that `anyccl explain` uses (rounds and bytes, with constants of one machine).
 * Messages count as one round. */
ANYCCL_API anycclResult_t anycclGroupSimulateEnd(anycclSimInfo_t* info);

/* ---- Misuse ---------------------------------------------------------------------------------- */

/* Wrong uses, and their consequences:
 * - Handles: a communicator, stream or event that was destroyed or aborted says so when it is used
 *   or destroyed again, as InvalidUsage or Aborted, until 256 others of its kind have been; also a
 *   communicator to a thread that comes at the moment when another one ends it.
 * - Fork: a child has none of its parent's communicators, streams and events. Calls with them are
 *   InvalidUsage, and destroying them or freeing works does nothing. It may make its own, exit or
 *   exec, also if other threads of its parent were in calls.
 * - What no call can notice: uses of handles after 256 others, of windows after 64 others of their
 *   communicator were deregistered, and of works, prepared calls, topologies, routings and coded
 *   AllReduces after they were freed, which are undefined, as for free(); buffers that are too
 *   small, or change before their operation is complete; a process that the system kills for want
 *   of memory (its peers are told that it died); a stack that is too small.
 * - Threads that wait must not be cancelled (pthread_cancel): that ends the process or leaves locks
 *   behind. anycclCommAbort of another thread ends a wait. */

#ifdef __cplusplus
}
#endif
#include "anyccl/device.h"
#include "anyccl/ext/codec.h"
#include "anyccl/ext/experts.h"
#include "anyccl/ext/nccl.h"
#include "anyccl/ext/neighbors.h"
#include "anyccl/ext/sparse.h"
#include "anyccl/interrupt.h"
#include "anyccl/sequence.h"
#include "anyccl/stream.h"
#include "anyccl/window.h"
#include "anyccl/work.h"
#endif /* ANYCCL_H */
