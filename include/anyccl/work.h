/* Asynchronous operations. */
#ifndef ANYCCL_WORK_H
#define ANYCCL_WORK_H

#include "anyccl/anyccl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  anycclCollAllReduce = 0,
  anycclCollBroadcast = 1,
  anycclCollAllToAllv = 2,
  anycclCollBarrier = 3,
  anycclCollSend = 4,
  anycclCollRecv = 5,
  anycclCollReduce = 6,
  anycclCollReduceScatter = 7,
  anycclCollAllGather = 8,
  anycclCollGather = 9,
  anycclCollScatter = 10,
  anycclCollAllToAll = 11,
  anycclCollAllGatherv = 12,
  anycclCollReduceScatterv = 13,
  anycclCollGatherv = 14,
  anycclCollScatterv = 15,
  anycclCollScan = 16,
  anycclCollExscan = 17,
  anycclNumCollectives = 18
} anycclCollective_t;

#define ANYCCL_ANY_SOURCE (-1) /* The `root` of a Recv: the next fitting message of any rank. */
#define ANYCCL_MAX_TAG 0x7fffffff
#define ANYCCL_LAYER_TAG(n) (-ANYCCL_MAX_TAG - 1 + (n)) /* For libraries above this one: n < 2^20 */
#define ANYCCL_NO_TIMEOUT 0xffffffffu /* A timeout_ms that no wait reaches: 49 days. */
/* One call as data. Zero it, set `size` to sizeof(anycclCall_t) and the fields that the operation
 * has under the same names above; `count` is also its sendcount or recvcount. Arrays are copied. */
typedef struct {
  size_t size;
  anycclCollective_t collective;
  const void* sendbuff;
  void* recvbuff;
  size_t count;
  anycclDataType_t datatype;
  anycclRedOp_t op;
  int root; /* For the rooted collectives. Send and Recv: the peer. */
  const size_t *sendcounts, *sdispls, *recvcounts, *rdispls;
  anycclStream_t stream; /* It starts after earlier work in the stream; NULL: at its turn. */
  int tag; /* Send, Recv: 0..ANYCCL_MAX_TAG. Messages match in order where it is the same. */
  /* When it is over the call fails, and the communicator; 0: the communicator's, for a message
   * while something waits for it. It counts from the call of a message, and from the turn of a
   * collective, when those before are complete and its stream has come to it. While another thread
   * is in a sequence it may count from the call, which then fails alone. */
  unsigned int timeout_ms;
  const anycclCollConfig_t* config; /* For a collective; NULL: none. Read during the call. */
  int synchronous;                  /* Send: not 0, as anycclSsend. */
} anycclCall_t;

/* Runs `call`, as the function of its name would; also inside a group. */
ANYCCL_API anycclResult_t anycclRun(const anycclCall_t* call, anycclComm_t comm);
/* anycclRun for about `wait_ms`, so that a program can look after signals and the like. A call that
 * takes longer goes on as if issued: InProgress, and *work, as anycclIssue() gives it; or NULL: it
 * has not begun, as another thread is in a sequence. In a stream or group: as anycclRun(). */
ANYCCL_API anycclResult_t anycclRunFor(const anycclCall_t* call, anycclComm_t comm,
                                       unsigned int wait_ms, anycclWork_t* work);
/* Issues `call` and does not wait for it; its buffers belong to it until it is complete. It goes
 * on in the background, in a thread of the library that sleeps while there is nothing to do, and
 * whoever waits on the communicator helps; also if its work was freed. Collectives of a
 * communicator run in the order they were issued; sends and receives do not wait for them. */
ANYCCL_API anycclResult_t anycclIssue(const anycclCall_t* call, anycclComm_t comm,
                                      anycclWork_t* work);
/* Issues all `count` calls, in their order, in no streams but those of devices: as a group, whose
 * small collectives travel as one where they can. works[i] is that of calls[i], NULL if it failed;
 * the first error is returned. Another stream or an impossible call or config: none was issued. */
ANYCCL_API anycclResult_t anycclIssueAll(const anycclCall_t* calls, size_t count, anycclComm_t comm,
                                         anycclWork_t* works);
/* Checks `call` once and plans it, with copies of its arrays, so that starting it costs less than
 * issuing it: MPI's persistent requests. Local; errors are those of anycclIssue. It is freed with
 * anycclPreparedFree. */
ANYCCL_API anycclResult_t anycclPrepare(const anycclCall_t* call, anycclComm_t comm,
                                        anycclPrepared_t* prepared);
/* As anycclIssue of its call: the order of starts is the order of calls, and buffers are read and
 * written as they are then. All ranks start the same collectives, prepared or not. InvalidUsage
 * while the operation of its last start is not complete, and once its communicator is finalized or
 * destroyed. Any thread. */
ANYCCL_API anycclResult_t anycclStart(anycclPrepared_t prepared, anycclWork_t* work);
/* Starts all `count`, also of several communicators, which have no streams, as anycclIssueAll: in
 * their order, small collectives as one where they can. works[i] is that of prepared[i], or NULL if
 * it failed; returns the first error. With a NULL or a stream among them nothing was started. */
ANYCCL_API anycclResult_t anycclStartAll(const anycclPrepared_t* prepared, size_t count,
                                         anycclWork_t* works);
/* Frees the handle; operations that it has started go on. NULL is allowed. */
ANYCCL_API anycclResult_t anycclPreparedFree(anycclPrepared_t prepared);
/* *done = 1 if the operation is complete or has failed; makes progress, never blocks. Any thread.
 * Returns the operation's error, if it has failed. */
ANYCCL_API anycclResult_t anycclWorkTest(anycclWork_t work, int* done);
/* Returns when the operation is complete. Any thread. */
ANYCCL_API anycclResult_t anycclWorkWait(anycclWork_t work);
/* anycclWorkWait, but InProgress, naming awaited ranks if any, after `timeout_ms`; it goes on. */
ANYCCL_API anycclResult_t anycclWorkWaitFor(anycclWork_t work, unsigned int timeout_ms);
/* Several works of any communicators; NULLs are left out, so a program sets freed ones to NULL. */
/* Returns when all of them are complete, with the first error. Any thread. */
ANYCCL_API anycclResult_t anycclWorkWaitAll(const anycclWork_t* works, size_t count);
/* Returns when one of them is complete or has failed: works[*index], with its error. *index = count
 * if all are NULL. A work that is complete is so again when asked again. */
ANYCCL_API anycclResult_t anycclWorkWaitAny(const anycclWork_t* works, size_t count, size_t* index);
/* anycclWorkWaitAny, but InProgress, and *index = count, if none is after `timeout_ms`. */
ANYCCL_API anycclResult_t anycclWorkWaitAnyFor(const anycclWork_t* works, size_t count,
                                               unsigned int timeout_ms, size_t* index);
/* anycclWorkWaitAny at once: *done = 1 if one has ended or all are NULL. Makes progress. */
ANYCCL_API anycclResult_t anycclWorkTestAny(const anycclWork_t* works, size_t count, size_t* index,
                                            int* done);
/* In place of its call's limit: the operation fails, and the communicator, when `timeout_ms` have
 * passed from now on, or for a collective from a later turn; 0: the communicator's. Any thread. */
ANYCCL_API anycclResult_t anycclWorkLimit(anycclWork_t work, unsigned int timeout_ms);
/* fn(userdata) is called once, when the operation is complete or has failed: now, by this thread,
 * if it is; else soon after by the library's background thread, which must not be kept long, as
 * nothing else moves there meanwhile. fn may call anyccl, but should not wait there for what
 * another rank of this process has issued, which only this thread advances. An exception from it is
 * logged. Any thread. Errors: of a communicator that has failed; then fn is not called. */
ANYCCL_API anycclResult_t anycclWorkNotify(anycclWork_t work, void (*fn)(void*), void* userdata);
/* *rank = the rank a done Recv came from; maybe ANYCCL_ANY_SOURCE if failed. Else InvalidUsage. */
ANYCCL_API anycclResult_t anycclWorkSource(anycclWork_t work, int* rank);
/* Frees the handle; the operation goes on. NULL is allowed. */
ANYCCL_API anycclResult_t anycclWorkFree(anycclWork_t work);

#ifdef __cplusplus
}
#endif

#endif
