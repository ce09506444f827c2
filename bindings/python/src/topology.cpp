#include "topology.hpp"

#include <utility>

namespace anyccl::python {
namespace {

/// Takes a topology that `make` writes for this rank alone; exchanges nothing with other ranks.
template <typename Make>
std::shared_ptr<Topology> make_topology(const CommunicatorPtr& comm, const Make& make) {
  const Communicator::Call turn(*comm);
  anycclTopology_t handle = nullptr;
  raise_unless_ok(unlocked([&] { return make(&handle, turn.handle); }));
  return std::make_shared<Topology>(comm, handle);
}

}  // namespace

std::shared_ptr<Topology> Topology::grid(const CommunicatorPtr& comm, const std::vector<int>& dims,
                                         const std::vector<int>& periodic) {
  return make_topology(comm, [&](anycclTopology_t* made, anycclComm_t handle) {
    return anycclTopologyCreateGrid(made, static_cast<int>(dims.size()), dims.data(),
                                    periodic.data(), handle);
  });
}

std::shared_ptr<Topology> Topology::graph(const CommunicatorPtr& comm,
                                          const std::vector<int>& sources,
                                          const std::vector<int>& destinations) {
  return make_topology(comm, [&](anycclTopology_t* made, anycclComm_t handle) {
    return anycclTopologyCreateGraph(made, static_cast<int>(sources.size()), sources.data(),
                                     static_cast<int>(destinations.size()), destinations.data(),
                                     handle);
  });
}

Topology::Topology(CommunicatorPtr comm, anycclTopology_t handle)
    : comm_(std::move(comm)), handle_(handle) {
  int sources = 0, destinations = 0;
  const int *from = nullptr, *to = nullptr;
  static_cast<void>(anycclTopologyNeighbors(handle, &sources, &from, &destinations, &to));
  sources_.assign(from, from + sources);
  destinations_.assign(to, to + destinations);
}

nb::list Topology::listed(const std::vector<int>& ranks) {
  nb::list list;
  for (const int rank : ranks) {
    if (rank == ANYCCL_NO_RANK)
      list.append(nb::none());
    else
      list.append(rank);
  }
  return list;
}

nb::object Topology::run(Request request, const StreamPtr& stream, Request::Start start) {
  request.extras_on_demand().start = std::move(start);
  request.extras_on_demand().context = shared_from_this();
  Options how;
  how.stream = stream;
  return comm_->run(std::move(request), how);
}

nb::object Topology::all_gather(nb::handle x, nb::handle out, const StreamPtr& stream) {
  Array in = Array::input(x, "x");
  const std::size_t count = in.count();
  Result result =
      Result::make(out, in, with_first(static_cast<std::int64_t>(sources_.size()), in.shape), true);
  Request r = request_of(std::move(in), std::move(result));
  return run(std::move(r), stream,
             [call = r.call, count, this](anycclComm_t comm, anycclStream_t s) {
               return anycclNeighborAllGather(call.sendbuff, call.recvbuff, count, call.datatype,
                                              handle_, comm, s);
             });
}

nb::object Topology::all_to_all(nb::handle x, nb::handle out, const StreamPtr& stream) {
  Array in = Array::input(x, "x");
  need_blocks(in.shape, destinations_.size(), "destinations");
  const std::size_t count = count_of(without_first(in.shape));
  Result result = Result::make(
      out, in, with_first(static_cast<std::int64_t>(sources_.size()), in.shape, 1), true);
  Request r = request_of(std::move(in), std::move(result));
  return run(std::move(r), stream,
             [call = r.call, count, this](anycclComm_t comm, anycclStream_t s) {
               return anycclNeighborAllToAll(call.sendbuff, call.recvbuff, count, call.datatype,
                                             handle_, comm, s);
             });
}

nb::object Topology::all_to_all_v(nb::handle x, const Numbers& send_counts,
                                  const Numbers& recv_counts, const MaybeNumbers& send_displs,
                                  const MaybeNumbers& recv_displs, nb::handle out,
                                  const StreamPtr& stream) {
  Array in = Array::input(x, "x");
  const Shape row = row_of(in, "x");
  BlockLayout sent =
      layout_of(send_counts, send_displs, count_of(row), destinations_.size(), "destinations");
  BlockLayout received =
      layout_of(recv_counts, recv_displs, count_of(row), sources_.size(), "sources");
  need_rows(in, sent.rows, !send_displs);
  Result result = gathered(out, in, row, received, true);
  Request r = request_of(std::move(in), std::move(result));
  set_sent(r, std::move(sent));
  set_received(r, std::move(received));
  return run(std::move(r), stream, [call = r.call, this](anycclComm_t comm, anycclStream_t s) {
    return anycclNeighborAllToAllv(call.sendbuff, call.sendcounts, call.sdispls, call.recvbuff,
                                   call.recvcounts, call.rdispls, call.datatype, handle_, comm, s);
  });
}

}  // namespace anyccl::python
