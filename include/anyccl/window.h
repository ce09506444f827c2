/* One-sided operations. */
#ifndef ANYCCL_WINDOW_H
#define ANYCCL_WINDOW_H

#include "anyccl/anyccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A rank puts data into memory of another, which does not call anything for it, and signals; the
 * other waits for signals. As NCCL has it since 2.29, for host memory. */

#define ANYCCL_WIN_DEFAULT 0x00
#define ANYCCL_WIN_COLL_SYMMETRIC 0x01
#define ANYCCL_WIN_STRICT_ORDERING 0x02
#define ANYCCL_WIN_REQUIRED_ALIGNMENT 4096 /* NCCL's. Nothing here needs it. */
#define ANYCCL_NUM_SIGNALS 256             /* sigIdx is in 0..255, */
#define ANYCCL_NUM_CONTEXTS 16             /* ctx in 0..15; all are there from the start. */
/* Makes the `size` bytes at `buff` this rank's part of a window, into which all ranks of `comm` may
 * put. Collective over `comm`; returns when all ranks have called it; in a group: at its end,
 * before its other calls, and *win is there then. Memory of any kind and alignment; sizes may
 * differ between ranks; where `size` is 0 `buff` may be NULL. Windows may overlap. `winFlags`
 * change nothing: puts are always ordered, and collectives read memory of anycclMemAlloc in place
 * without a window. The memory belongs to the caller, who reads it after anycclWaitSignal. Errors:
 * InvalidArgument at the rank that passed it, RemoteError at others; `comm` goes on. */
ANYCCL_API anycclResult_t anycclCommWindowRegister(anycclComm_t comm, void* buff, size_t size,
                                                   anycclWindow_t* win, int winFlags);
/* Collective over `comm`; in a group: at its end, before its other calls. Returns when what others
 * put here before they called it has landed; then nobody writes the memory. Using `win` later is
 * InvalidUsage. Destroying or aborting `comm` also ends its windows, without waiting for puts. */
ANYCCL_API anycclResult_t anycclCommWindowDeregister(anycclComm_t comm, anycclWindow_t win);
/* *outUserPtr = the `buff` of this rank. */
ANYCCL_API anycclResult_t anycclWinGetUserPtr(anycclComm_t comm, anycclWindow_t win,
                                              void** outUserPtr);
/* Writes `count` elements of `localbuff`, any memory, into the window of rank `peer`, from
 * `peerWinOffset` bytes on, and then signals. Complete when localbuff may be reused; the data may
 * land later. It is there for a rank that has waited for the signal. `peer` may be this rank. Puts
 * and signals of one rank to another with the same `ctx` take effect in the order of their calls
 * (here: whatever their ctx), so one signal also tells of the puts before it; a signal of another
 * rank says nothing about them. `flags` is 0. The target moves the data: when it waits in a call on
 * `comm`, and otherwise within some milliseconds by the library's background thread. So a put waits
 * neither for a call of its target nor for ever, with one exception: behind a send of the same pair
 * that its target has not received, it lands only while that waits for signals or messages of this
 * rank, or deregisters. A target that has failed or gone is an error as for a send. */
ANYCCL_API anycclResult_t anycclPutSignal(const void* localbuff, size_t count,
                                          anycclDataType_t datatype, int peer,
                                          anycclWindow_t peerWin, size_t peerWinOffset, int sigIdx,
                                          int ctx, unsigned int flags, anycclComm_t comm,
                                          anycclStream_t stream);
/* A put of nothing, which needs no window. Without any window of `comm` signals arrive only while
 * their target waits for signals or messages, and the fourth and later ones may wait until then. */
ANYCCL_API anycclResult_t anycclSignal(int peer, int sigIdx, int ctx, unsigned int flags,
                                       anycclComm_t comm, anycclStream_t stream);
/* Waits for `opCnt` signals of rank `peer` with that index and context. */
typedef struct {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
} anycclWaitSignalDesc_t;
/* Complete when all signals that the `nDesc` descriptors ask for have arrived, which are used up
 * then; they may have come before. Calls that want the same signals get them in the order of calls.
 * The descriptors are copied. Inside a group: complete at its end, as are the group's puts. */
ANYCCL_API anycclResult_t anycclWaitSignal(int nDesc, anycclWaitSignalDesc_t* signalDescs,
                                           anycclComm_t comm, anycclStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
