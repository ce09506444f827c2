// The C interface: grids, graphs, and exchanges between neighbours.

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "adapter/c/exchange.hpp"
#include "base/error.hpp"

/// One rank's view. Neighbour i of a list is ranks[i], and tags[i] tells its messages from those of
/// the same rank in another place of the list.
struct anycclTopology {
  struct Neighbors {
    void add(int rank, std::uint32_t tag) {
      ranks.push_back(rank);
      tags.push_back(tag);
    }
    std::vector<int> ranks;
    std::vector<std::uint32_t> tags;
  };

  int size = 0, rank = 0;
  std::vector<int> dims;
  std::vector<bool> periodic;
  Neighbors sources, destinations;
};

namespace anyccl {
namespace {

constexpr int kMostDimensions = 16;

Status need_topology(const anycclTopology* topology) {
  return need(topology, "topology");
}

Status need_grid(const anycclTopology* topology) {
  ANYCCL_CHECK(need_topology(topology));
  if (topology->dims.empty())
    return error(Code::invalid_argument,
                 "topology is a graph: it has neighbours but no dimensions");
  return {};
}

/// Prime factors, the largest first, each to the smallest dimension so far.
void choose(std::vector<int>& dims, const std::vector<std::size_t>& open, int product) {
  std::vector<int> primes;
  for (int p = 2; p <= product / p; ++p)
    for (; product % p == 0; product /= p) primes.push_back(p);
  if (product > 1) primes.push_back(product);
  std::vector<int> factors(open.size(), 1);
  for (auto prime = primes.rbegin(); prime != primes.rend(); ++prime)
    *std::min_element(factors.begin(), factors.end()) *= *prime;
  std::sort(factors.rbegin(), factors.rend());
  for (std::size_t i = 0; i < open.size(); ++i) dims[open[i]] = factors[i];
}

Result<std::vector<int>> complete_dims(std::span<const int> asked, int size) {
  std::vector<int> dims(asked.begin(), asked.end());
  std::vector<std::size_t> open;
  std::int64_t product = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] > size)
      return error(Code::invalid_argument, "dims[{}] is {} of {} ranks", i, dims[i], size);
    if (dims[i] == 0)
      open.push_back(i);
    else
      product = std::min<std::int64_t>(product * dims[i], std::int64_t{size} + 1);
  }
  if (product > size || size % product != 0 || (open.empty() && product != size))
    return error(Code::invalid_argument, "dims are {}, but the communicator has {} ranks",
                 fmt::to_string(fmt::join(dims, " x ")), size);
  choose(dims, open, size / static_cast<int>(product));
  return dims;
}

std::vector<int> coords_of(const anycclTopology& grid, int rank) {
  std::vector<int> coords(grid.dims.size());
  for (std::size_t i = coords.size(); i-- > 0;) {
    coords[i] = rank % grid.dims[i];
    rank /= grid.dims[i];
  }
  return coords;
}

int rank_at(const anycclTopology& grid, std::span<const int> coords) {
  int rank = 0;
  for (std::size_t i = 0; i < grid.dims.size(); ++i) {
    const int n = grid.dims[i];
    if (!grid.periodic[i] && (coords[i] < 0 || coords[i] >= n)) return ANYCCL_NO_RANK;
    rank = rank * n + (coords[i] % n + n) % n;
  }
  return rank;
}

int shifted(const anycclTopology& grid, std::size_t dim, std::int64_t displacement) {
  std::vector<int> coords = coords_of(grid, grid.rank);
  const std::int64_t n = grid.dims[dim], at = coords[dim] + displacement;
  if (grid.periodic[dim])
    coords[dim] = static_cast<int>((at % n + n) % n);
  else
    coords[dim] = at < 0 || at >= n ? -1 : static_cast<int>(at);
  return rank_at(grid, coords);
}

/// What goes to the rank before along dimension i has tag 2i, to the one after 2i + 1.
void add_neighbors(anycclTopology& grid) {
  for (std::size_t i = 0; i < grid.dims.size(); ++i)
    for (const std::uint32_t after : {0U, 1U}) {
      const int rank = shifted(grid, i, after == 1 ? 1 : -1);
      const auto tag = static_cast<std::uint32_t>(2 * i);
      grid.destinations.add(rank, tag + after);
      grid.sources.add(rank, tag + 1 - after);
    }
}

Status check_neighbors(const char* name, int count, const int* ranks, int size) {
  if (count < 0) return error(Code::invalid_argument, "n{} is {}", name, count);
  if (count > 0) ANYCCL_CHECK(need(ranks, name));
  for (int i = 0; i < count; ++i)
    if (ranks[i] != ANYCCL_NO_RANK && (ranks[i] < 0 || ranks[i] >= size))
      return error(Code::invalid_argument, "{}[{}] is {}, which is not a rank of {}", name, i,
                   ranks[i], size);
  return {};
}

Result<std::unique_ptr<anycclTopology>> make_topology(anycclTopology_t* topology,
                                                      anycclComm_t comm) {
  ANYCCL_CHECK(need(topology, "topology"));
  ANYCCL_CHECK(need_comm(comm));
  auto made = std::make_unique<anycclTopology>();
  made->size = comm->comm->size();
  made->rank = index(comm->comm->rank());
  return made;
}

/// The blocks of one list of neighbours.
struct Blocks {
  Collective way;
  const void* buffer;
  const std::size_t *counts, *displs;  ///< Null: blocks of `count` elements,
  std::size_t count, stride;           ///< as many elements apart.
};

Status add_messages(const Blocks& blocks, const anycclTopology::Neighbors& neighbors,
                    anycclDataType_t datatype, std::vector<BlockMessage>& to) {
  const std::size_t element = bytes_of(static_cast<DType>(as_byte(datatype)));
  if (element == 0)
    return error(Code::invalid_argument, "datatype {} does not exist", static_cast<int>(datatype));
  const bool equal = blocks.counts == nullptr;
  const auto* const bytes = static_cast<const std::byte*>(blocks.buffer);
  for (std::size_t i = 0; i < neighbors.ranks.size(); ++i) {
    const std::size_t first = equal ? i * blocks.stride : blocks.displs[i];
    to.push_back({blocks.way, neighbors.ranks[i], neighbors.tags[i],
                  bytes == nullptr ? bytes : bytes + first * element,
                  equal ? blocks.count : blocks.counts[i], datatype});
  }
  return {};
}

Status check_fit(const anycclTopology* topology, anycclComm_t comm) {
  ANYCCL_CHECK(need_comm(comm));
  ANYCCL_CHECK(need_topology(topology));
  const int size = comm->comm->size(), rank = index(comm->comm->rank());
  if (topology->size != size || topology->rank != rank)
    return error(Code::invalid_argument,
                 "topology is of rank {} of {}, but the communicator's is rank {} of {}",
                 topology->rank, topology->size, rank, size);
  return {};
}

anycclResult_t exchange_blocks(const Blocks& sent, const Blocks& received,
                               anycclDataType_t datatype, anycclTopology_t topology,
                               anycclComm_t comm, anycclStream_t stream) {
  std::vector<BlockMessage> messages;
  const anycclResult_t ready = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(check_fit(topology, comm));
    ANYCCL_CHECK(add_messages(sent, topology->destinations, datatype, messages));
    return add_messages(received, topology->sources, datatype, messages);
  });
  return ready != anycclSuccess ? ready : exchange(messages, comm, stream);
}

}  // namespace
}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclTopologyCreateGrid(anycclTopology_t* topology, int ndims, const int dims[],
                                        const int periodic[], anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_TRY(auto made, make_topology(topology, comm));
    if (ndims < 1 || ndims > kMostDimensions)
      return error(Code::invalid_argument, "ndims is {}, which is not in 1..{}", ndims,
                   kMostDimensions);
    ANYCCL_CHECK(need(dims, "dims"));
    const auto n = static_cast<std::size_t>(ndims);
    ANYCCL_TRY(made->dims, complete_dims({dims, n}, made->size));
    for (std::size_t i = 0; i < n; ++i)
      made->periodic.push_back(periodic != nullptr && periodic[i] != 0);
    add_neighbors(*made);
    *topology = made.release();
    return {};
  });
}

anycclResult_t anycclTopologyCreateGraph(anycclTopology_t* topology, int nsources,
                                         const int sources[], int ndestinations,
                                         const int destinations[], anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_TRY(auto made, make_topology(topology, comm));
    ANYCCL_CHECK(check_neighbors("sources", nsources, sources, made->size));
    ANYCCL_CHECK(check_neighbors("destinations", ndestinations, destinations, made->size));
    for (int i = 0; i < nsources; ++i) made->sources.add(sources[i], 0);
    for (int i = 0; i < ndestinations; ++i) made->destinations.add(destinations[i], 0);
    *topology = made.release();
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
    *ndims = static_cast<int>(topology->dims.size());
    if (dims != nullptr) std::copy(topology->dims.begin(), topology->dims.end(), dims);
    return {};
  });
}

anycclResult_t anycclTopologyCoords(anycclTopology_t topology, int rank, int coords[]) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_grid(topology));
    ANYCCL_CHECK(need(coords, "coords"));
    if (rank < 0 || rank >= topology->size)
      return error(Code::invalid_argument, "rank {} is not in 0..{}", rank, topology->size - 1);
    const std::vector<int> found = coords_of(*topology, rank);
    std::copy(found.begin(), found.end(), coords);
    return {};
  });
}

anycclResult_t anycclTopologyRank(anycclTopology_t topology, const int coords[], int* rank) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_grid(topology));
    ANYCCL_CHECK(need(coords, "coords"));
    ANYCCL_CHECK(need(rank, "rank"));
    *rank = rank_at(*topology, {coords, topology->dims.size()});
    return {};
  });
}

anycclResult_t anycclTopologyShift(anycclTopology_t topology, int dim, int displacement,
                                   int* source, int* destination) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_grid(topology));
    ANYCCL_CHECK(need(source, "source"));
    ANYCCL_CHECK(need(destination, "destination"));
    if (dim < 0 || static_cast<std::size_t>(dim) >= topology->dims.size())
      return error(Code::invalid_argument, "dim {} is not in 0..{}", dim,
                   topology->dims.size() - 1);
    *source = shifted(*topology, static_cast<std::size_t>(dim), -std::int64_t{displacement});
    *destination = shifted(*topology, static_cast<std::size_t>(dim), displacement);
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
    *nsources = static_cast<int>(topology->sources.ranks.size());
    *sources = topology->sources.ranks.data();
    *ndestinations = static_cast<int>(topology->destinations.ranks.size());
    *destinations = topology->destinations.ranks.data();
    return {};
  });
}

anycclResult_t anycclTopologySplit(anycclTopology_t topology, const int keep[], anycclComm_t comm,
                                   anycclComm_t* newcomm, anycclConfig_t* config) {
  int color = 0;
  const anycclResult_t ready = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_grid(topology));
    ANYCCL_CHECK(need(keep, "keep"));
    ANYCCL_CHECK(check_fit(topology, comm));
    const std::vector<int> coords = coords_of(*topology, topology->rank);
    for (std::size_t i = 0; i < coords.size(); ++i)
      if (keep[i] == 0) color = color * topology->dims[i] + coords[i];
    return {};
  });
  if (ready != anycclSuccess) return ready;
  return anycclCommSplit(comm, color, topology->rank, newcomm, config);
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
  const anycclResult_t ready = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(check_fit(topology, comm));
    if (!topology->destinations.ranks.empty()) {
      ANYCCL_CHECK(need(sendcounts, "sendcounts"));
      ANYCCL_CHECK(need(sdispls, "sdispls"));
    }
    if (topology->sources.ranks.empty()) return {};
    ANYCCL_CHECK(need(recvcounts, "recvcounts"));
    return need(rdispls, "rdispls");
  });
  if (ready != anycclSuccess) return ready;
  return exchange_blocks({Collective::send, sendbuff, sendcounts, sdispls, 0, 0},
                         {Collective::recv, recvbuff, recvcounts, rdispls, 0, 0}, datatype,
                         topology, comm, stream);
}
