/* Calls that are one place in the order of a communicator's calls. */
#ifndef ANYCCL_SEQUENCE_H
#define ANYCCL_SEQUENCE_H

#include "anyccl/anyccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Begins calls of this thread that belong together: until anycclSequenceEnd, collectives of other
 * threads of this rank on `comm` wait, and so do creations of communicators and windows. Messages,
 * puts, signals and AllReducePart in threads from 1 on do not. For what takes several calls, as an
 * exchange of sizes, then of data: it is one place in the order of calls, the same on all ranks.
 * Local. anycclCommSplit and its like are sequences by themselves. Waits while another thread is in
 * one, for at most `wait_ms`: InProgress then; or, if sooner, as with ANYCCL_NO_TIMEOUT,
 * Timeout at the time limit of `comm`. Any thread. InvalidUsage in a group, in a sequence of this
 * thread, and while a communicator is made from `comm` by a call that did not block. */
ANYCCL_API anycclResult_t anycclSequenceBegin(anycclComm_t comm, unsigned int wait_ms);
/* From now on no thread makes calls of the sequence, until one takes it. InvalidUsage if there is
 * none. */
ANYCCL_API anycclResult_t anycclSequenceHandOver(anycclComm_t comm);
/* From now on this thread makes them. InvalidUsage if there is none. */
ANYCCL_API anycclResult_t anycclSequenceTake(anycclComm_t comm);
/* Ends it; operations that it has issued go on. Any thread; also after `comm` has failed.
 * InvalidUsage if there is none. Destroying and aborting `comm` end it, too. */
ANYCCL_API anycclResult_t anycclSequenceEnd(anycclComm_t comm);

#ifdef __cplusplus
}
#endif

#endif
