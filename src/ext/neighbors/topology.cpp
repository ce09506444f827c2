// The C interface: grids, graphs, and exchanges between neighbours.

#include "framework/message/topology.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "c/creation.hpp"
#include "c/exchange.hpp"

struct anycclTopology {
  anyccl::RankTopology topology;
};

namespace anyccl {
namespace {

constexpr int kMostDimensions = 16;

Status need_topology(const anycclTopology* handle) {
  return need(handle, "topology");
}

Status need_grid(const anycclTopology* handle) {
  ANYCCL_CHECK(need_topology(handle));
  if (handle->topology.dims().empty())
    return error(Code::invalid_argument,
                 "topology is a graph: it has neighbours but no dimensions");
  return {};
}

Status need_ranks(const char* name, int count, const int* ranks) {
  if (count < 0) return error(Code::invalid_argument, "n{} is {}", name, count);
  return count == 0 ? Status() : need(ranks, name);
}

std::span<const int> first(const int* numbers, int count) {
  return {numbers, numbers == nullptr ? 0 : static_cast<std::size_t>(count)};
}

/// The blocks of one list of neighbours.
struct Blocks {
  Collective way;
  const void* buffer;
  const std::size_t *counts, *displs;       ///< If null: blocks of `count` elements,
  std::size_t count, stride;                ///< as many elements apart.
  const anycclDataType_t* types = nullptr;  ///< One for each block: `displs` is in bytes then.
};

/// Appends a message for each neighbor, also where its block is empty.
Status add_messages(const Blocks& blocks, const RankTopology::Neighbors& neighbors,
                    anycclDataType_t datatype, std::vector<BlockMessage>& to) {
  const std::size_t element =
      blocks.types != nullptr ? 1 : bytes_of(static_cast<DType>(as_byte(datatype)));
  if (element == 0)
    return error(Code::invalid_argument, "datatype {} does not exist", static_cast<int>(datatype));
  const bool equal = blocks.counts == nullptr;
  const auto* const bytes = static_cast<const std::byte*>(blocks.buffer);
  for (std::size_t i = 0; i < neighbors.ranks.size(); ++i) {
    const std::size_t first = equal ? i * blocks.stride : blocks.displs[i];
    to.push_back({blocks.way, neighbors.ranks[i], neighbors.tags[i],
                  bytes == nullptr ? bytes : bytes + first * element,
                  equal ? blocks.count : blocks.counts[i],
                  blocks.types != nullptr ? blocks.types[i] : datatype});
  }
  return {};
}

Status check_fit(const anycclTopology* handle, anycclComm_t comm) {
  ANYCCL_CHECK(need_comm(comm));
  ANYCCL_CHECK(need_topology(handle));
  const RankTopology& topology = handle->topology;
  const int size = comm->comm->size(), rank = index(comm->comm->rank());
  if (topology.size() != size || topology.rank() != rank)
    return error(Code::invalid_argument,
                 "topology is of rank {} of {}, but the communicator's is rank {} of {}",
                 topology.rank(), topology.size(), rank, size);
  return {};
}

anycclResult_t exchange_blocks(const Blocks& sent, const Blocks& received,
                               anycclDataType_t datatype, anycclTopology_t handle,
                               anycclComm_t comm, anycclStream_t stream) {
  std::vector<BlockMessage> messages;
  const anycclResult_t ready = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(check_fit(handle, comm));
    const RankTopology& topology = handle->topology;
    ANYCCL_CHECK(add_messages(sent, topology.destinations(), datatype, messages));
    return add_messages(received, topology.sources(), datatype, messages);
  });
  return ready != anycclSuccess ? ready : exchange(messages, comm, stream);
}

anycclResult_t exchange_different_blocks(const Blocks& sent, const Blocks& received,
                                         anycclDataType_t datatype, anycclTopology_t topology,
                                         anycclComm_t comm, anycclStream_t stream) {
  const anycclResult_t ready = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(check_fit(topology, comm));
    if (!topology->topology.destinations().ranks.empty()) {
      ANYCCL_CHECK(need(sent.counts, "sendcounts"));
      ANYCCL_CHECK(need(sent.displs, "sdispls"));
    }
    if (topology->topology.sources().ranks.empty()) return {};
    ANYCCL_CHECK(need(received.counts, "recvcounts"));
    return need(received.displs, "rdispls");
  });
  return ready != anycclSuccess ? ready
                                : exchange_blocks(sent, received, datatype, topology, comm, stream);
}

}  // namespace
}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclTopologyCreateGrid(anycclTopology_t* topology, int ndims, const int dims[],
                                        const int periodic[], anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need(topology, "topology"));
    ANYCCL_CHECK(need_comm(comm));
    if (ndims < 1 || ndims > kMostDimensions)
      return error(Code::invalid_argument, "ndims is {}, which is not in 1..{}", ndims,
                   kMostDimensions);
    ANYCCL_CHECK(need(dims, "dims"));
    ANYCCL_TRY(RankTopology made,
               RankTopology::make_grid(comm->comm->size(), index(comm->comm->rank()),
                                       first(dims, ndims), first(periodic, ndims)));
    *topology = new anycclTopology{std::move(made)};
    return {};
  });
}

anycclResult_t anycclTopologyCreateGraph(anycclTopology_t* topology, int nsources,
                                         const int sources[], int ndestinations,
                                         const int destinations[], anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need(topology, "topology"));
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need_ranks("sources", nsources, sources));
    ANYCCL_CHECK(need_ranks("destinations", ndestinations, destinations));
    ANYCCL_TRY(
        RankTopology made,
        RankTopology::make_graph(comm->comm->size(), index(comm->comm->rank()),
                                 first(sources, nsources), first(destinations, ndestinations)));
    *topology = new anycclTopology{std::move(made)};
    return {};
  });
}

anycclResult_t anycclTopologyDestroy(anycclTopology_t topology) {
  delete topology;
  return anycclSuccess;
}

anycclResult_t anycclTopologyDims(anycclTopology_t topology, int* ndims, int dims[]) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_topology(topology));
    ANYCCL_CHECK(need(ndims, "ndims"));
    const std::vector<int>& all = topology->topology.dims();
    *ndims = static_cast<int>(all.size());
    if (dims != nullptr) std::copy(all.begin(), all.end(), dims);
    return {};
  });
}

anycclResult_t anycclTopologyCoords(anycclTopology_t topology, int rank, int coords[]) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_grid(topology));
    ANYCCL_CHECK(need(coords, "coords"));
    if (rank < 0 || rank >= topology->topology.size())
      return error(Code::invalid_argument, "rank {} is not in 0..{}", rank,
                   topology->topology.size() - 1);
    const std::vector<int> found = topology->topology.coords_of(rank);
    std::copy(found.begin(), found.end(), coords);
    return {};
  });
}

anycclResult_t anycclTopologyRank(anycclTopology_t topology, const int coords[], int* rank) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_grid(topology));
    ANYCCL_CHECK(need(coords, "coords"));
    ANYCCL_CHECK(need(rank, "rank"));
    *rank = topology->topology.rank_at({coords, topology->topology.dims().size()});
    return {};
  });
}

anycclResult_t anycclTopologyShift(anycclTopology_t topology, int dim, int displacement,
                                   int* source, int* destination) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_grid(topology));
    ANYCCL_CHECK(need(source, "source"));
    ANYCCL_CHECK(need(destination, "destination"));
    const RankTopology& grid = topology->topology;
    if (dim < 0 || static_cast<std::size_t>(dim) >= grid.dims().size())
      return error(Code::invalid_argument, "dim {} is not in 0..{}", dim, grid.dims().size() - 1);
    *source = grid.shifted(static_cast<std::size_t>(dim), -std::int64_t{displacement});
    *destination = grid.shifted(static_cast<std::size_t>(dim), displacement);
    return {};
  });
}

anycclResult_t anycclTopologyNeighbors(anycclTopology_t topology, int* nsources,
                                       const int** sources, int* ndestinations,
                                       const int** destinations) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_topology(topology));
    ANYCCL_CHECK(need(nsources, "nsources"));
    ANYCCL_CHECK(need(sources, "sources"));
    ANYCCL_CHECK(need(ndestinations, "ndestinations"));
    ANYCCL_CHECK(need(destinations, "destinations"));
    const std::vector<int>&from = topology->topology.sources().ranks,
          &to = topology->topology.destinations().ranks;
    *nsources = static_cast<int>(from.size());
    *sources = from.data();
    *ndestinations = static_cast<int>(to.size());
    *destinations = to.data();
    return {};
  });
}

anycclResult_t anycclTopologySplit(anycclTopology_t topology, const int keep[], anycclComm_t comm,
                                   anycclComm_t* newcomm, anycclConfig_t* config) {
  int color = 0, rank = 0;
  const auto read = [&]() -> Status {
    ANYCCL_CHECK(need_grid(topology));
    ANYCCL_CHECK(need(keep, "keep"));
    ANYCCL_CHECK(check_fit(topology, comm));
    const RankTopology& grid = topology->topology;
    color = grid.color({keep, grid.dims().size()});
    rank = grid.rank();
    return {};
  };
  Status problem;
  const anycclResult_t ready = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    problem = read();
    return {};
  });
  return ready != anycclSuccess ? ready : split_by(comm, color, rank, newcomm, config, problem);
}

anycclResult_t anycclNeighborAllGather(const void* sendbuff, void* recvbuff, size_t count,
                                       anycclDataType_t datatype, anycclTopology_t topology,
                                       anycclComm_t comm, anycclStream_t stream) {
  return exchange_blocks({Collective::send, sendbuff, nullptr, nullptr, count, 0},
                         {Collective::recv, recvbuff, nullptr, nullptr, count, count}, datatype,
                         topology, comm, stream);
}

anycclResult_t anycclNeighborAllToAll(const void* sendbuff, void* recvbuff, size_t count,
                                      anycclDataType_t datatype, anycclTopology_t topology,
                                      anycclComm_t comm, anycclStream_t stream) {
  return exchange_blocks({Collective::send, sendbuff, nullptr, nullptr, count, count},
                         {Collective::recv, recvbuff, nullptr, nullptr, count, count}, datatype,
                         topology, comm, stream);
}

anycclResult_t anycclNeighborAllToAllv(const void* sendbuff, const size_t sendcounts[],
                                       const size_t sdispls[], void* recvbuff,
                                       const size_t recvcounts[], const size_t rdispls[],
                                       anycclDataType_t datatype, anycclTopology_t topology,
                                       anycclComm_t comm, anycclStream_t stream) {
  return exchange_different_blocks({Collective::send, sendbuff, sendcounts, sdispls, 0, 0},
                                   {Collective::recv, recvbuff, recvcounts, rdispls, 0, 0},
                                   datatype, topology, comm, stream);
}

anycclResult_t anycclNeighborAllToAllw(const void* sendbuff, const size_t sendcounts[],
                                       const size_t sdispls[], const anycclDataType_t sendtypes[],
                                       void* recvbuff, const size_t recvcounts[],
                                       const size_t rdispls[], const anycclDataType_t recvtypes[],
                                       anycclTopology_t topology, anycclComm_t comm,
                                       anycclStream_t stream) {
  const anycclResult_t ready = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(check_fit(topology, comm));
    if (!topology->topology.destinations().ranks.empty())
      ANYCCL_CHECK(need(sendtypes, "sendtypes"));
    return topology->topology.sources().ranks.empty() ? Status() : need(recvtypes, "recvtypes");
  });
  if (ready != anycclSuccess) return ready;
  return exchange_different_blocks(
      {Collective::send, sendbuff, sendcounts, sdispls, 0, 0, sendtypes},
      {Collective::recv, recvbuff, recvcounts, rdispls, 0, 0, recvtypes}, anycclInt8, topology,
      comm, stream);
}
