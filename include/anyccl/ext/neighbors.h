/* Grids and graphs of ranks, and exchanges of neighbours in them. */
#ifndef ANYCCL_EXT_NEIGHBORS_H
#define ANYCCL_EXT_NEIGHBORS_H

#include "anyccl/anyccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which ranks are near which, as the program sees it. */
typedef struct anycclTopology* anycclTopology_t;

/* A topology is this rank's view of who talks to whom, and a local object: making one sends
 * nothing, and `comm` need not outlive it. Any thread; one that destroys it is the last. */
#define ANYCCL_NO_RANK (-2) /* Beyond the edge of a grid. */
/* All ranks of `comm` as the places of a grid, in row-major order: the last dimension varies
 * fastest. A dims[i] that is 0 is chosen: the product becomes the number of ranks, with factors
 * near to each other (not always the nearest: 72 is 12 x 6) and the larger ones first. Where
 * periodic[i] is not 0 dimension i is a circle; NULL: none is. Neighbours are, for each dimension,
 * the rank before and the rank after; what goes to the one before arrives there as from the one
 * after, also where both are the same rank. `ndims` is in 1..16. */
ANYCCL_API anycclResult_t anycclTopologyCreateGrid(anycclTopology_t* topology, int ndims,
                                                   const int dims[], const int periodic[],
                                                   anycclComm_t comm);
/* Neighbours in any order; a rank may occur several times, and then its messages match in order.
 * Each rank says whom it sends to and whom it hears of: they fit if r is a source of q as often as
 * q is a destination of r. */
ANYCCL_API anycclResult_t anycclTopologyCreateGraph(anycclTopology_t* topology, int nsources,
                                                    const int sources[], int ndestinations,
                                                    const int destinations[], anycclComm_t comm);
/* NULL is allowed. */
ANYCCL_API anycclResult_t anycclTopologyDestroy(anycclTopology_t topology);
/* *ndims = the dimensions of the grid, 0 of a graph; dims[i] for i < *ndims, unless it is NULL. */
ANYCCL_API anycclResult_t anycclTopologyDims(anycclTopology_t topology, int* ndims, int dims[]);
ANYCCL_API anycclResult_t anycclTopologyCoords(anycclTopology_t topology, int rank, int coords[]);
/* In periodic dimensions any coordinate is on the circle; beyond an edge *rank = ANYCCL_NO_RANK. */
ANYCCL_API anycclResult_t anycclTopologyRank(anycclTopology_t topology, const int coords[],
                                             int* rank);
/* The ranks `displacement` before and after this one along dimension `dim`, or ANYCCL_NO_RANK. */
ANYCCL_API anycclResult_t anycclTopologyShift(anycclTopology_t topology, int dim, int displacement,
                                              int* source, int* destination);
/* The lists belong to the topology. Of a grid both are the same: 2 * ndims ranks, beyond an
 * edge ANYCCL_NO_RANK. */
ANYCCL_API anycclResult_t anycclTopologyNeighbors(anycclTopology_t topology, int* nsources,
                                                  const int** sources, int* ndestinations,
                                                  const int** destinations);
/* Collective over the communicator `comm` of the grid: ranks whose coordinates differ only in the
 * dimensions with keep[i] != 0 form a new communicator, in the order of those coordinates, the last
 * one fastest. So a grid of pipeline x data x tensor parallelism gives the group of each, and of
 * each pair. `config`, groups, errors: as for anycclCommSplit. */
ANYCCL_API anycclResult_t anycclTopologySplit(anycclTopology_t topology, const int keep[],
                                              anycclComm_t comm, anycclComm_t* newcomm,
                                              anycclConfig_t* config);
/* Exchanges with neighbours, in the order of their lists. Every rank of `comm` that is a neighbour
 * of another makes the call, with a topology that fits; there are messages between neighbours and
 * no others, so it does not wait for all ranks. Blocks of neighbours that are ANYCCL_NO_RANK are
 * neither read nor written. Buffers do not overlap. Also inside a group.
 * Block i of recvbuff = the sendbuff of source i, `count` elements each. */
ANYCCL_API anycclResult_t anycclNeighborAllGather(const void* sendbuff, void* recvbuff,
                                                  size_t count, anycclDataType_t datatype,
                                                  anycclTopology_t topology, anycclComm_t comm,
                                                  anycclStream_t stream);
/* Block j of sendbuff goes to destination j; block i of recvbuff comes from source i; `count`
 * elements each. */
ANYCCL_API anycclResult_t anycclNeighborAllToAll(const void* sendbuff, void* recvbuff, size_t count,
                                                 anycclDataType_t datatype,
                                                 anycclTopology_t topology, anycclComm_t comm,
                                                 anycclStream_t stream);
/* Blocks may have different sizes; counts and offsets in elements, one for each destination
 * and each source. Both ends of a message have the same count; an empty one is not sent. */
ANYCCL_API anycclResult_t anycclNeighborAllToAllv(const void* sendbuff, const size_t sendcounts[],
                                                  const size_t sdispls[], void* recvbuff,
                                                  const size_t recvcounts[], const size_t rdispls[],
                                                  anycclDataType_t datatype,
                                                  anycclTopology_t topology, anycclComm_t comm,
                                                  anycclStream_t stream);
/* Each block has a datatype, equal at both ends, and offsets are in bytes. */
ANYCCL_API anycclResult_t anycclNeighborAllToAllw(
    const void* sendbuff, const size_t sendcounts[], const size_t sdispls[],
    const anycclDataType_t sendtypes[], void* recvbuff, const size_t recvcounts[],
    const size_t rdispls[], const anycclDataType_t recvtypes[], anycclTopology_t topology,
    anycclComm_t comm, anycclStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
