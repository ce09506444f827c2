/* Streams and events. */
#ifndef ANYCCL_STREAM_H
#define ANYCCL_STREAM_H

#include "anyccl/anyccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stream does its work in a thread of its own, started with the first work, one by one in the
 * order of calls, beside the program: operations, its functions, and waits for other streams.
 *
 * Outside groups an operation with a stream returns after its arguments were checked and it has its
 * place in the order of its communicator. It starts when earlier work in the stream is done; later
 * work in the stream sees its result. Its buffers belong to it until then. Errors: a wrong call
 * returns its error, and nothing was put into the stream. A later failure is returned by
 * anycclStreamSynchronize and anycclStreamQuery from then on (and by anycclCommGetAsyncError
 * for the communicator); it does not end the stream: functions still run, operations on a failed
 * communicator fail at once, others run. A stream created before fork is InvalidUsage in the child.
 * exit() leaves undone what streams have not done, after at most a second for running functions. */
ANYCCL_API anycclResult_t anycclStreamCreate(anycclStream_t* stream);
/* Frees the handle and returns at once; what is in the stream is still done. NULL is allowed. */
ANYCCL_API anycclResult_t anycclStreamDestroy(anycclStream_t stream);
/* Returns when all work that is in the stream now is done, with the first error of the stream. Not
 * from one of its own functions: InvalidUsage. */
ANYCCL_API anycclResult_t anycclStreamSynchronize(anycclStream_t stream);
/* Success if all work is done, InProgress if not, or the first error of the stream. */
ANYCCL_API anycclResult_t anycclStreamQuery(anycclStream_t stream);
/* Work put into `stream` later starts when what `event` was last recorded at is done; an error of
 * that is one of `stream`, too. At once if never recorded. Recording it again changes nothing. */
ANYCCL_API anycclResult_t anycclStreamWaitEvent(anycclStream_t stream, anycclEvent_t event);
/* fn(userdata) runs when earlier work in the stream is done, also if that has failed, in the thread
 * of the stream; later work starts when it has returned. Waiting without a limit for what stands
 * behind it in its own stream is InvalidUsage: by a work, an event or a call whose turn comes after
 * such an operation, as a collective or a message of its pair. Nothing notices streams that wait
 * for each other in a circle. An exception from it is an error of the stream. */
ANYCCL_API anycclResult_t anycclLaunchHostFunc(anycclStream_t stream, void (*fn)(void*),
                                               void* userdata);

/* An event that was never recorded counts as complete. */
ANYCCL_API anycclResult_t anycclEventCreate(anycclEvent_t* event);
/* Also while streams are on their way to it. NULL is allowed. */
ANYCCL_API anycclResult_t anycclEventDestroy(anycclEvent_t event);
/* The event is complete when all work now in `stream` is done. Earlier recordings are forgotten. */
ANYCCL_API anycclResult_t anycclEventRecord(anycclEvent_t event, anycclStream_t stream);
/* Success if it is complete, InProgress if not, or the first error of the work before it. */
ANYCCL_API anycclResult_t anycclEventQuery(anycclEvent_t event);
/* Returns when it is complete, with the first error of the work before it. */
ANYCCL_API anycclResult_t anycclEventSynchronize(anycclEvent_t event);
/* anycclEventSynchronize, but InProgress if not complete after `timeout_ms`; the stream goes on. */
ANYCCL_API anycclResult_t anycclEventSynchronizeFor(anycclEvent_t event, unsigned int timeout_ms);
/* *ms = time from when the stream of `start` came to it until that of `end` did. InvalidUsage if
 * one was never recorded, InProgress if one is not complete. */
ANYCCL_API anycclResult_t anycclEventElapsedTime(float* ms, anycclEvent_t start, anycclEvent_t end);

#ifdef __cplusplus
}
#endif

#endif
