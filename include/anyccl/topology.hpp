#pragma once
// Grids and graphs of ranks, and exchanges between neighbours (anyccl.hpp includes this).

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "anyccl/anyccl.h"
#include "anyccl/communicator.hpp"
#include "anyccl/group.hpp"
#include "anyccl/status.hpp"
#include "anyccl/stream.hpp"
#include "anyccl/types.hpp"
#include "anyccl/view.hpp"

namespace anyccl {

/// One rank's view of whom it exchanges messages with: a Grid or a Graph. A local object, which
/// sends nothing when it is made and may outlive its communicator. Any thread.
///
/// The exchanges are with neighbours, in the order of their lists, and with nobody else: they do
/// not wait for all ranks. Every rank that is a neighbour makes the call. Blocks of neighbours that
/// are kNoRank are neither read nor written. Buffers do not overlap. Without a stream an exchange
/// returns when it is complete, in a group at once.
class Topology {
 public:
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  anycclTopology_t handle() const { return handle_; }

  /// Whom this rank hears of, and whom it sends to. Of a grid both are, for each dimension, the
  /// rank before and the rank after, or kNoRank.
  std::vector<Rank> sources() const { return lists().first; }
  std::vector<Rank> destinations() const { return lists().second; }

  /// Block i of `out` becomes the `in` of source i.
  ///
  /// Shapes: out.count == in.count * sources().size().
  Status neighbor_all_gather(Communicator& comm, View in, View out, const Stream& stream = {}) {
    if (const Status fit = check("out", out, in.count, sources().size(), in.dtype); !fit.ok())
      return fit;
    return detail::status_of(anycclNeighborAllGather(in.data, out.data, in.count, type(in), handle_,
                                                     comm.handle(), stream.handle()),
                             comm.handle());
  }
  /// Block j of `in` goes to destination j; block i of `out` comes from source i. Of a grid, what
  /// goes to the rank before arrives there as from the rank after.
  ///
  /// Shapes: one block for each destination and each source, all of the same size.
  Status neighbor_all_to_all(Communicator& comm, View in, View out, const Stream& stream = {}) {
    const auto [from, to] = lists();
    const std::size_t count = !to.empty()     ? in.count / to.size()
                              : !from.empty() ? out.count / from.size()
                                              : 0;
    if (const Status fit = check("in", in, count, to.size(), in.dtype); !fit.ok()) return fit;
    if (const Status fit = check("out", out, count, from.size(), in.dtype); !fit.ok()) return fit;
    return detail::status_of(anycclNeighborAllToAll(in.data, out.data, count, type(in), handle_,
                                                    comm.handle(), stream.handle()),
                             comm.handle());
  }
  /// neighbor_all_to_all() with blocks of different sizes: `sent` has an entry for each
  /// destination, `received` for each source. Both ends of a message have the same count; an empty
  /// one is not sent.
  Status neighbor_all_to_all_v(Communicator& comm, View in, const BlockLayout& sent, View out,
                               const BlockLayout& received, const Stream& stream = {}) {
    const auto [from, to] = lists();
    if (const Status fit = check_entries("sent", sent, to.size()); !fit.ok()) return fit;
    if (const Status fit = check_entries("received", received, from.size()); !fit.ok()) return fit;
    if (const Status fit = check("out", out, out.count, 1, in.dtype); !fit.ok()) return fit;
    return detail::status_of(
        anycclNeighborAllToAllv(in.data, sent.counts.data(), sent.displs.data(), out.data,
                                received.counts.data(), received.displs.data(), type(in), handle_,
                                comm.handle(), stream.handle()),
        comm.handle());
  }

 protected:
  Topology() = default;
  Topology(Topology&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Topology& operator=(Topology&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Topology() { static_cast<void>(anycclTopologyDestroy(handle_)); }

  anycclTopology_t handle_ = nullptr;

 private:
  static anycclDataType_t type(const View& view) {
    return static_cast<anycclDataType_t>(view.dtype);
  }
  std::pair<std::vector<Rank>, std::vector<Rank>> lists() const {
    int sources = 0, destinations = 0;
    const int *from = nullptr, *to = nullptr;
    static_cast<void>(
        anycclTopologyNeighbors(handle_, &sources, &from, &destinations, &to));  // or none
    std::pair<std::vector<Rank>, std::vector<Rank>> both;
    for (int i = 0; i < sources; ++i) both.first.push_back(Rank{from[i]});
    for (int i = 0; i < destinations; ++i) both.second.push_back(Rank{to[i]});
    return both;
  }
  static Status check(const char* name, const View& view, std::size_t count, std::size_t blocks,
                      DType dtype) {
    if (view.dtype != dtype)
      return detail::refused(Code::invalid_argument, "the views are of different types");
    if (view.count == count * blocks) return {};
    return detail::refused(Code::invalid_argument,
                           std::string(name) + " has " + std::to_string(view.count) +
                               " elements, which are not " + std::to_string(blocks) +
                               " blocks of " + std::to_string(count));
  }
  static Status check_entries(const char* name, const BlockLayout& layout, std::size_t neighbors) {
    for (const std::size_t entries : {layout.counts.size(), layout.displs.size()})
      if (entries != neighbors)
        return detail::refused(Code::invalid_argument,
                               std::string(name) + " has " + std::to_string(entries) +
                                   " entries instead of one for each of " +
                                   std::to_string(neighbors) + " neighbours");
    return {};
  }
};

/// A dimension of a grid. Names are free, such as data, tensor, pipeline, expert or context.
struct Dimension {
  std::string name{};
  int size = 0;           ///< 0: chosen, so that all ranks have a place.
  bool periodic = false;  ///< A circle: the last one is before the first.
};

/// All ranks of a communicator as the places of a grid, in row-major order: the last dimension
/// varies fastest.
///
/// So one world becomes the groups of data, tensor, pipeline, expert and context parallelism, each
/// by one call: `grid = Grid::create(world, {{"pipeline", 4}, {"data", 2}, {"tensor", 2}})`, and
/// then `grid->split(world, {"tensor"})`, `grid->split(world, {"data", "tensor"})`, ...
class Grid : public Topology {
 public:
  struct Shift {
    Rank source, destination;
  };

  /// Errors: invalid_argument, saying what does not fit: 1 to 16 dimensions, whose product is the
  /// number of ranks, and whose names differ.
  static Result<Grid> create(const Communicator& comm, const std::vector<Dimension>& dimensions) {
    std::vector<int> dims, periodic;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j)
        if (dimensions[i].name == dimensions[j].name)
          return detail::refused(Code::invalid_argument,
                                 "dimensions " + std::to_string(j) + " and " + std::to_string(i) +
                                     " are both '" + dimensions[i].name + "'");
      dims.push_back(dimensions[i].size);
      periodic.push_back(dimensions[i].periodic ? 1 : 0);
    }
    Grid grid;
    Status status =
        detail::status_of(anycclTopologyCreateGrid(&grid.handle_, static_cast<int>(dims.size()),
                                                   dims.data(), periodic.data(), comm.handle()),
                          comm.handle());
    if (!status.ok()) return status;
    int count = 0;
    status = detail::status_of(anycclTopologyDims(grid.handle_, &count, dims.data()));
    if (!status.ok()) return status;
    grid.dimensions_ = dimensions;
    for (std::size_t i = 0; i < dims.size(); ++i) grid.dimensions_[i].size = dims[i];
    return grid;
  }

  Grid() = default;

  /// With the sizes that were chosen.
  const std::vector<Dimension>& dimensions() const { return dimensions_; }

  /// The place of a rank, a coordinate for each dimension.
  Result<std::vector<int>> coords(Rank rank) const {
    std::vector<int> coords(dimensions_.size());
    const Status status =
        detail::status_of(anycclTopologyCoords(handle_, index(rank), coords.data()));
    if (!status.ok()) return status;
    return coords;
  }
  /// The rank at a place. In a periodic dimension any coordinate is on the circle; elsewhere,
  /// beyond the edge, it is kNoRank.
  Result<Rank> rank(const std::vector<int>& coords) const {
    if (coords.size() != dimensions_.size())
      return detail::refused(Code::invalid_argument,
                             std::to_string(coords.size()) + " coordinates in a grid of " +
                                 std::to_string(dimensions_.size()) + " dimensions");
    int rank = 0;
    const Status status = detail::status_of(anycclTopologyRank(handle_, coords.data(), &rank));
    if (!status.ok()) return status;
    return Rank{rank};
  }
  /// The ranks that are `displacement` before and after this one along a dimension, or kNoRank.
  Result<Shift> shift(std::string_view dimension, int displacement = 1) const {
    const Result<std::size_t> dim = place_of(dimension);
    if (!dim.ok()) return dim.status();
    int source = 0, destination = 0;
    const Status status = detail::status_of(
        anycclTopologyShift(handle_, static_cast<int>(*dim), displacement, &source, &destination));
    if (!status.ok()) return status;
    return Shift{Rank{source}, Rank{destination}};
  }

  /// Collective over the communicator of the grid: ranks whose coordinates differ only in the
  /// `kept` dimensions form a new communicator, in the order of their ranks in `comm`.
  Result<Communicator> split(Communicator& comm, const std::vector<std::string>& kept,
                             const CommunicatorConfig& config = {}) const {
    return Communicator::value_of("split", "split_into", config, [&](Communicator& part) {
      return split_into(part, comm, kept, config);
    });
  }
  /// split() into `part`; see Communicator::split_into().
  Status split_into(Communicator& part, Communicator& comm, const std::vector<std::string>& kept,
                    const CommunicatorConfig& config = {}) const {
    std::vector<int> keep(dimensions_.size());
    for (const std::string& name : kept) {
      const Result<std::size_t> dim = place_of(name);
      if (!dim.ok()) return dim.status();
      keep[*dim] = 1;
    }
    return part.take("split_into", comm.handle(), [&](anycclComm_t* made) {
      anycclConfig_t c = config.c_config();
      return anycclTopologySplit(handle_, keep.data(), comm.handle(), made, &c);
    });
  }

 private:
  Result<std::size_t> place_of(std::string_view name) const {
    std::string all;
    for (std::size_t i = 0; i < dimensions_.size(); ++i) {
      if (dimensions_[i].name == name) return i;
      all += (i == 0 ? "" : ", ") + dimensions_[i].name;
    }
    return detail::refused(Code::invalid_argument,
                           "the grid has no dimension '" + std::string(name) + "', but " + all);
  }

  std::vector<Dimension> dimensions_;
};

/// Any neighbours, in any order; a rank may occur several times, and then its messages match in
/// order.
class Graph : public Topology {
 public:
  /// Each rank says whom it hears of and whom it sends to: they fit if r is a source of q as often
  /// as q is a destination of r. Errors: invalid_argument, naming the entry.
  static Result<Graph> create(const Communicator& comm, const std::vector<Rank>& sources,
                              const std::vector<Rank>& destinations) {
    const auto numbers = [](const std::vector<Rank>& ranks) {
      std::vector<int> all;
      for (const Rank rank : ranks) all.push_back(index(rank));
      return all;
    };
    const std::vector<int> from = numbers(sources), to = numbers(destinations);
    Graph graph;
    const Status status = detail::status_of(
        anycclTopologyCreateGraph(&graph.handle_, static_cast<int>(from.size()), from.data(),
                                  static_cast<int>(to.size()), to.data(), comm.handle()),
        comm.handle());
    if (!status.ok()) return status;
    return graph;
  }

  Graph() = default;
};

}  // namespace anyccl
