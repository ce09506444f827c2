/* How a program ends calls of its own that wait, for Ctrl-C and its like. */
#ifndef ANYCCL_INTERRUPT_H
#define ANYCCL_INTERRUPT_H

#include "anyccl/anyccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives this thread a function that says whether its calls should stop waiting, for instance
 * after Ctrl-C. A call that waits for other ranks asks it ten times a second, from this thread
 * and without a lock of the library; it may call the library. As soon as it returns something
 * else than 0, the communicators that the call waits for are aborted, their other ranks are told,
 * and it returns Aborted: half of it may be done, so no operation can follow it. A call that waits
 * for a sequence of another thread has done nothing yet, and returns Aborted alone. Local. `check`
 * NULL: none again, as at first.
 *
 * Calls with a time of their own, as anycclRunFor and anycclSequenceBegin, do not ask (but for
 * anycclCommFinalizeFor), and return anyway. Waits for a stream or an event do not ask either:
 * give an event a time, by anycclEventSynchronizeFor. Not all creations ask: let them not block
 * (`blocking` of anycclConfig_t), and abort what they make. Windows in a group do not ask: make and
 * deregister them outside. anycclCommDestroy asks while its communicator is still being created,
 * and leaves that to the background then. It does not while the communicator is being finalized in
 * the background: wait until anycclCommGetAsyncError says that it is done, or abort it. */
ANYCCL_API anycclResult_t anycclThreadInterrupt(int (*check)(void* argument), void* argument);

#ifdef __cplusplus
}
#endif

#endif
