/* Buffers in memory of a device. */
#ifndef ANYCCL_DEVICE_H
#define ANYCCL_DEVICE_H

#include "anyccl/anyccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The device of a communicator, whose memory its calls take. A communicator that is made while the
 * program uses a CUDA device in this thread (the driver is loaded and has a current context) has
 * that one, with anycclCommInitAll rank r that of `devlist`, without a list device r if there is
 * one; a communicator that is made of another one has its device. All others have none, and no
 * driver is loaded for them. Ranks may differ in it.
 *
 * With a device, the buffers of collectives and messages, blocking, in groups, issued, prepared and
 * with a stream of anycclStreamWrap, may lie in memory of that device, in managed memory, or in
 * memory of the host, input and output apart. A call with such a stream, or with memory of the
 * device, waits for earlier work of the stream, with `stream` NULL of the device's default stream,
 * copies the input to the host, does the same call there, and copies the result back. A blocking
 * one returns when its result is there. In a group this begins at its end, inputs first, so that no
 * call of it sees there what another one writes. The caller's current device stays as it is.
 *
 * One that is issued (anycclIssue, anycclIssueAll, anycclRunFor) or started (anycclStart,
 * anycclStartAll) does all this in the background: its input is copied when the work is done that
 * the stream has by then, and its work is complete when the result is on the device. No stream
 * waits for that: wait for the work before later work of a stream uses the result.
 *
 * Errors, besides those of the call: InvalidArgument for memory of another device, for a buffer
 * whose allocation ends before it does, and for memory that neither the host nor the device knows,
 * as after a free; InvalidUsage for a stream that is being captured. DeviceError, with the function
 * of the driver that failed, fails the communicator. Unsupported for memory of a device in parts of
 * threads, anycclRecvFound, streams of anycclStreamCreate, windows, routings and coded AllReduces.
 * Calls of a communicator without a device, and those without a communicator, do not ask what
 * memory is: with memory of a device they crash. */
#define ANYCCL_NO_DEVICE (-1)
/* From now on `comm` has this device, numbered as cuDeviceGet does, or none. Local; no other thread
 * is in a call on `comm`. Errors: Unsupported where there is no driver, or no such device. */
ANYCCL_API anycclResult_t anycclCommSetDevice(anycclComm_t comm, int device);
/* *device = the number of the device that `comm` has, or ANYCCL_NO_DEVICE. */
ANYCCL_API anycclResult_t anycclCommGetDevice(anycclComm_t comm, int* device);

/* *stream stands for a stream of a device (a CUstream, which a cudaStream_t is): `native`, of
 * device number `device`; NULL is the default stream. Calls of communicators with that device take
 * it, see above. It is no queue of this library: other calls with it, but for anycclStreamDestroy,
 * which leaves `native` alone, are InvalidUsage. `native` is not used here, but must live until
 * calls that have it return, and prepared ones are freed. Errors: Unsupported as
 * anycclCommSetDevice. */
ANYCCL_API anycclResult_t anycclStreamWrap(anycclStream_t* stream, int device, void* native);

/* Collective: all ranks of `comm`, 2 to 8, call it, each with a device, all on one host. From then
 * on, collectives with equal blocks in memory of devices run in queues of these: each step waits
 * there for the peers, and no thread does. Then:
 *
 * - A call with a stream of anycclStreamWrap returns when it is in the queues, unless those are
 *   full. Later work of the stream waits for the result, and may change `sendbuff`.
 * - A call with `stream` NULL blocks. No stream waits for one that is issued: see
 *   anycclWorkWaitStream.
 * - If a rank has a buffer of a call in memory of a device, all have, or the call fails on all of
 *   them (InvalidUsage). Memory of the host beside it must be pinned (InvalidArgument).
 * - A failure is that of the communicator, see anycclCommGetAsyncError. Streams go on then, with
 *   undefined results.
 *
 * Done by copies, as without queues: operators of the program, logical scans, sums of more than
 * 8 KiB that are added up in another type, calls with a configuration, prepared and verified ones,
 * v-forms and messages. A prepared call meets prepared ones alone. anycclCommSetDevice is
 * InvalidUsage from now on; communicators made of this one have no queues by this call. One rank
 * alone needs none. Errors, on all ranks, naming the rank: Unsupported for what it lacks, a device
 * whose queues write words and wait for them, kernels (ANYCCL_WITH_CUDA_KERNELS), shared memory.
 *
 * With ANYCCL_DEVICE_QUEUES=1, or deviceQueues of anycclConfig_t, communicators do this when they
 * are made. Where a rank lacks something, those with a device warn, and calls go by copies. */
ANYCCL_API anycclResult_t anycclCommUseDeviceQueues(anycclComm_t comm);
/* Later work of `stream`, one of anycclStreamWrap, waits until `work` is complete. Returns at once
 * if `work` is a call in queues of the stream's device, else when it is complete. anycclWorkFree
 * frees `work`, as ever. Errors: those of anycclWorkWait; InvalidUsage for other streams. */
ANYCCL_API anycclResult_t anycclWorkWaitStream(anycclWork_t work, anycclStream_t stream);
/* *device = the number of the device in whose queues `work` is, or ANYCCL_NO_DEVICE: then
 * anycclWorkWaitStream waits until it is complete. */
ANYCCL_API anycclResult_t anycclWorkGetDevice(anycclWork_t work, int* device);

#ifdef __cplusplus
}
#endif

#endif
