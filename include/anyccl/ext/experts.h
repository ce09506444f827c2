/* Sends tokens to the ranks of their experts, and back: mixtures of experts. */
#ifndef ANYCCL_EXT_EXPERTS_H
#define ANYCCL_EXT_EXPERTS_H

#include "anyccl/anyccl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct anycclRouting* anycclRouting_t; /* Which tokens go to which experts. */

/* Decides where tokens go, and exchanges the counts. Collective over `comm`; returns when it is
 * done, so not in a group. experts[token * choices + k] in 0..nexperts-1 is the k-th expert of a
 * token, or -1: none. Rank r of n has the nexperts / n experts from r * nexperts / n on, without a
 * rest. Ranks with other `nexperts`, `capacity` or `padded` get InvalidUsage. An expert takes the
 * first `capacity` tokens of each rank, others are dropped; 0: it takes all. With `padded` not 0
 * every expert has `capacity` rows (not 0) of each rank, so sizes do not depend on tokens. A
 * routing serves any number of Dispatch and Combine calls, one at a time, also backwards. */
ANYCCL_API anycclResult_t anycclRoutingCreate(anycclRouting_t* routing, size_t ntokens, int choices,
                                              const int experts[], int nexperts, size_t capacity,
                                              int padded, anycclComm_t comm);
/* NULL is allowed. */
ANYCCL_API anycclResult_t anycclRoutingDestroy(anycclRouting_t routing);
/* *rows = the rows that this rank's experts have in all; counts[e] = how many of them are tokens
 * for its expert e; *dropped = the dropped choices of this rank's tokens. `counts` and `dropped`
 * may be NULL. */
ANYCCL_API anycclResult_t anycclRoutingRows(anycclRouting_t routing, size_t* rows, size_t counts[],
                                            size_t* dropped);
/* recvbuff = the tokens for this rank's experts, one expert after the other, each in the order of
 * ranks and of their tokens; padding is zero. sendbuff has ntokens rows, recvbuff as many as
 * anycclRoutingRows says, of `width` elements. Collective, not in place or in a group; returns when
 * complete. */
ANYCCL_API anycclResult_t anycclDispatch(const void* sendbuff, void* recvbuff, size_t width,
                                         anycclDataType_t datatype, anycclRouting_t routing,
                                         anycclComm_t comm);
/* The way back: recvbuff[token] = the sum over its choices of weights[token * choices + k] times
 * the row that its expert made of it; dropped choices add nothing. `weights` are of `datatype`,
 * each product is rounded to it, and they are added up in the order of choices by the tree that
 * reductions have, 16 at a time; NULL: all are 1. Shapes are those of anycclDispatch, reversed. */
ANYCCL_API anycclResult_t anycclCombine(const void* sendbuff, const void* weights, void* recvbuff,
                                        size_t width, anycclDataType_t datatype,
                                        anycclRouting_t routing, anycclComm_t comm);

#ifdef __cplusplus
}
#endif

#endif
