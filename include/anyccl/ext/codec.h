/* Vectors as shorter payloads, and an AllReduce that sends them so between hosts. */
#ifndef ANYCCL_EXT_CODEC_H
#define ANYCCL_EXT_CODEC_H

#include "anyccl/anyccl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct anycclCoded* anycclCoded_t; /* An AllReduce that a codec shortens. */

/* Vectors of Float32, Bfloat16 or Float16 as payloads, mostly of fewer bytes: blocks of elements
 * with a common scale. Errors and costs of each are in docs/numbers/codecs.md. A payload has the
 * codes of all blocks and then their scales, both from a multiple of 64 bytes on; the last block is
 * whole, its rest zeros. All CPUs give the same bits. A block with an infinity or a NaN becomes all
 * NaN where a codec has scales; Bfloat16 and Float16 have none. Any bytes can be decoded. Any
 * thread may call; vectors may have any alignment, and vectors and payloads of one call do not
 * overlap. */
typedef enum {
  anycclCodecBfloat16 = 0, /* "bf16": rounded to nearest even. */
  anycclCodecFloat16 = 1,  /* "f16": the same; magnitudes from 65520 on become infinite. */
  /* "int8": blocks of 128, -127..127, a Bfloat16 scale. An element is off by at most 1/252 of the
   * largest in its block, before it is rounded to `datatype`; blocks below 2^-119 become zeros. */
  anycclCodecInt8 = 2,
  /* "mxint8", "mxfp8_e4m3", "mxfp8_e5m2": OCP Microscaling (MX) 1.0, blocks of 32, 8-bit scale. */
  anycclCodecMxInt8 = 3,
  anycclCodecMxFloat8e4m3 = 4,
  anycclCodecMxFloat8e5m2 = 5,
  anycclCodecInt4 = 6, /* "int4": blocks of 32, -7..7, a Bfloat16 scale; docs/numbers/codecs.md. */
  anycclNumCodecs = 7
} anycclCodec_t;
/* *codec = the one of this name. Errors: Unsupported, naming those that there are. */
ANYCCL_API anycclResult_t anycclCodecFromName(const char* name, anycclCodec_t* codec);
/* *bytes = the size of the payload of `count` elements. */
ANYCCL_API anycclResult_t anycclCodecBytes(anycclCodec_t codec, size_t count, size_t* bytes);
/* `count` elements of `x` as a payload of just these bytes. Errors: InvalidArgument, if `bytes` is
 * not that of anycclCodecBytes, here and below; Unsupported, naming codec and datatype. */
ANYCCL_API anycclResult_t anycclCodecEncode(anycclCodec_t codec, const void* x, size_t count,
                                            anycclDataType_t datatype, void* payload, size_t bytes);
/* y = the sum of `sources` payloads, one or more, added up in float32 by the tree that reductions
 * have, and rounded once to `datatype`. A NaN is the positive quiet one. */
ANYCCL_API anycclResult_t anycclCodecDecode(anycclCodec_t codec, const void* const payloads[],
                                            size_t sources, size_t bytes, void* y, size_t count,
                                            anycclDataType_t datatype);
/* payload = that sum of `count` elements, as a payload again. */
ANYCCL_API anycclResult_t anycclCodecSum(anycclCodec_t codec, const void* const payloads[],
                                         size_t sources, size_t bytes, void* payload, size_t count);

/* Makes an AllReduce over the ranks of `comm` in which vectors travel between hosts as payloads of
 * `codec`. Collective, and splits communicators from `comm`, with memory of their own. Inside a
 * host nothing is coded, and so nothing at all where there is one host. With `everywhere` each rank
 * counts as a host. With `ifSlow` it is measured now, with and without the codec, and elements of 4
 * bytes, or of 2, are coded only if that takes less than 9/10 of the time. All ranks decide the
 * same. Errors: InvalidUsage naming two ranks whose codecs, `everywhere` or `ifSlow` differ;
 * Unsupported at level 2 and 3 of reproducibility with `ifSlow`, and at level 3 with several hosts,
 * unless `everywhere`; those of anycclCommSplit. */
ANYCCL_API anycclResult_t anycclCodedCreate(anycclCoded_t* coded, anycclCodec_t codec,
                                            int everywhere, int ifSlow, anycclComm_t comm);
/* *is = 1 if elements of `datatype` travel as payloads, 0 if as they are. Any thread, any time. */
ANYCCL_API anycclResult_t anycclCodedUsesCodec(anycclCoded_t coded, anycclDataType_t datatype,
                                               int* is);
/* anycclAllReduce with op anycclSum or anycclAvg and Float32, Bfloat16 or Float16. Returns when the
 * result is there; not in a group. One call at a time; others wait.
 * - With the codec each host adds up in float32, in slices; two hosts send each other their sums of
 *   a slice; more send the chunks of others to these, and the sums of chunks to all. All decode the
 *   same payloads, also those that they have encoded themselves: so results are bitwise equal on
 *   all ranks, and an element is encoded once with two hosts and twice with more.
 * - An element's result then depends on its block (the first begins at sendbuff), and on which
 *   ranks are on which host; on the length of the call only in a last block that it cuts.
 * - Errors: Unsupported, naming codec and datatype or operator, and InvalidArgument, on this rank
 *   alone; InvalidUsage on all ranks, naming two whose calls differ. That, and what else fails on
 *   the way, is the error of all later calls, too. */
ANYCCL_API anycclResult_t anycclCodedAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                               anycclDataType_t datatype, anycclRedOp_t op,
                                               anycclCoded_t coded);
/* On all ranks, before `comm` is destroyed or after. NULL is allowed. No thread is in a call. */
ANYCCL_API anycclResult_t anycclCodedDestroy(anycclCoded_t coded);

#ifdef __cplusplus
}
#endif

#endif
