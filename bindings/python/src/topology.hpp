#pragma once
// Exchanges between neighbours; the classes of Python are in ../anyccl/grid.py.

#include <memory>
#include <vector>

#include "shapes.hpp"

namespace anyccl::python {

/// One rank's neighbours in a grid or a graph. It keeps its communicator alive.
class Topology : public std::enable_shared_from_this<Topology> {
 public:
  static std::shared_ptr<Topology> grid(const CommunicatorPtr& comm, const std::vector<int>& dims,
                                        const std::vector<int>& periodic);
  static std::shared_ptr<Topology> graph(const CommunicatorPtr& comm,
                                         const std::vector<int>& sources,
                                         const std::vector<int>& destinations);

  Topology(CommunicatorPtr comm, anycclTopology_t handle);
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  ~Topology() { static_cast<void>(anycclTopologyDestroy(handle_)); }

  /// None beyond an edge.
  nb::list sources() const { return listed(sources_); }
  nb::list destinations() const { return listed(destinations_); }

  nb::object all_gather(nb::handle x, nb::handle out, const StreamPtr& stream);
  nb::object all_to_all(nb::handle x, nb::handle out, const StreamPtr& stream);
  nb::object all_to_all_v(nb::handle x, const Numbers& send_counts, const Numbers& recv_counts,
                          const MaybeNumbers& send_displs, const MaybeNumbers& recv_displs,
                          nb::handle out, const StreamPtr& stream);

 private:
  static nb::list listed(const std::vector<int>& ranks);
  nb::object run(Request request, const StreamPtr& stream, Request::Start start);

  CommunicatorPtr comm_;
  anycclTopology_t handle_;
  std::vector<int> sources_, destinations_;
};

}  // namespace anyccl::python
