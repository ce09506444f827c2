/* The large elements of vectors as payloads, without a communicator. */
#ifndef ANYCCL_EXT_SPARSE_H
#define ANYCCL_EXT_SPARSE_H

#include "anyccl/anyccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The large elements of a Float32 vector as bytes that ranks exchange instead: with anycclAllGather
 * if all take equally many, else anycclAllGatherv. Nothing here needs a communicator. Any thread
 * may call; vectors have any alignment and do not overlap in a call. Top-K with error feedback:
 * Stich, Cordonnier and Jaggi, "Sparsified SGD with Memory", NeurIPS 2018. Momentum correction and
 * masking: Lin, Han, Mao, Wang and Dally, "Deep Gradient Compression", ICLR 2018.
 *
 * A payload has 12 bytes ('a', 'S', 1, the datatype of its values, the elements of the vector as
 * uint64_t), then for each block of 65536 elements the number of its entries as uint32_t and,
 * whichever is shorter: their places in the block as uint16_t, or a bit for each element, and then
 * their values; or the values of all elements, -0 for those that are no entries. All in the order
 * of bytes of x86. */

/* Which elements are taken: those whose bits without the sign are more than `least`, and the first
 * `ties` where they are equal; `entries` in all. Infinities and NaNs are above all numbers. */
typedef struct {
  uint32_t least;
  size_t ties;
  size_t entries;
} anycclSparseCut_t;
/* About `keep` <= count elements, by the magnitudes of every 61st element (of all, up to 8192): one
 * pass. Every run takes the same. Vectors unlike their sample have more or fewer, never zeros. */
ANYCCL_API anycclResult_t anycclSparseThreshold(const float* x, size_t count, size_t keep,
                                                anycclSparseCut_t* cut);
/* Exactly the `k` <= count largest elements; of equal ones, the first. Takes temporary memory, of 4
 * bytes for each of such a sample and for some 2 (k + 1000), or for all if they are unlike it. */
ANYCCL_API anycclResult_t anycclSparseTopK(const float* x, size_t count, size_t k,
                                           anycclSparseCut_t* cut);
/* No payload with `entries` of `count` elements has more than `*bytes`. `values` is Float32,
 * Bfloat16 or Float16; others are Unsupported. */
ANYCCL_API anycclResult_t anycclSparseBound(size_t count, size_t entries, anycclDataType_t values,
                                            size_t* bytes);
/* Moves the elements that `cut`, made of `residual` as it is, takes into `payload`, which has room
 * for `capacity` bytes: at least what anycclSparseBound says, or InvalidArgument. `*bytes` become
 * the bytes of the payload. `residual` keeps what rounding to `values` took of these elements, so
 * that residual and payload together are the old residual; numbers too large for Float16 leave the
 * rest, rounded to f32 from 2^29 on; infinities and NaNs leave nothing. In `momentum`, which may be
 * NULL, these elements become 0. If `residual` has changed since: other elements, or
 * InvalidArgument, and some may be lost. */
ANYCCL_API anycclResult_t anycclSparsePack(float* residual, float* momentum, size_t count,
                                           const anycclSparseCut_t* cut, anycclDataType_t values,
                                           void* payload, size_t capacity, size_t* bytes);
/* into[i] += what `payload` has for element i. Ranks that add the payloads of all ranks in the same
 * order to equal vectors get the same bits. A payload may come from anyone: where its bytes are
 * none of a vector of `count` elements, this is InvalidArgument, says what is wrong, and changes
 * nothing. Bytes behind its end, up to `bytes`, are ignored. It must not change meanwhile. */
ANYCCL_API anycclResult_t anycclSparseAdd(const void* payload, size_t bytes, float* into,
                                          size_t count);
/* momentum[i] = factor * momentum[i] + gradient[i], then residual[i] += momentum[i]. */
ANYCCL_API anycclResult_t anycclSparseMomentum(float* momentum, float* residual,
                                               const float* gradient, size_t count, float factor);

#ifdef __cplusplus
}
#endif

#endif
