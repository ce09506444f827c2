// To Python: exchanges between neighbours, and mixture of experts.

#include "bind.hpp"
#include "docs/neighbors.hpp"
#include "routing.hpp"
#include "topology.hpp"

namespace anyccl::python {

void bind_neighbors(nb::module_& m) {
  const auto x = "x"_a.none();
  const auto out = "out"_a.none() = nb::none();
  const auto stream = "stream"_a.none() = nb::none();
  nb::class_<Topology>(m, "_Topology", "The neighbours of a Grid or a Graph.")
      .def_static("grid", &Topology::grid, "comm"_a, "dims"_a, "periodic"_a)
      .def_static("graph", &Topology::graph, "comm"_a, "sources"_a, "destinations"_a)
      .def_prop_ro("sources", &Topology::sources, nb::sig("def sources(self) -> list[int | None]"))
      .def_prop_ro("destinations", &Topology::destinations,
                   nb::sig("def destinations(self) -> list[int | None]"))
      .def("all_gather", &Topology::all_gather, x, out, stream)
      .def("all_to_all", &Topology::all_to_all, x, out, stream)
      .def("all_to_all_v", &Topology::all_to_all_v, x, "send_counts"_a, "recv_counts"_a,
           "send_displs"_a.none(), "recv_displs"_a.none(), out, stream);
}

void bind_routing(nb::module_& m) {
  const nb::kw_only named;
  const auto out = "out"_a.none() = nb::none();
  nb::class_<Routing>(m, "Routing", docs::kRouting)
      .def_prop_ro("tokens", &Routing::tokens, docs::kRoutingTokens)
      .def_prop_ro("choices", &Routing::choices, docs::kRoutingChoices)
      .def_prop_ro("rows", &Routing::rows, docs::kRoutingRows)
      .def_prop_ro("counts", &Routing::counts, docs::kRoutingCounts)
      .def_prop_ro("dropped", &Routing::dropped, docs::kRoutingDropped)
      .def("dispatch", &Routing::dispatch, "x"_a, named, out, docs::kDispatch,
           nb::sig("def dispatch(self, x: object, *, out: object | None = None) -> typing.Any"))
      .def("combine", &Routing::combine, "x"_a, "weights"_a.none() = nb::none(), named, out,
           docs::kCombine,
           nb::sig("def combine(self, x: object, weights: object | None = None, *, "
                   "out: object | None = None) -> typing.Any"))
      .def("__repr__", [](const Routing& self) {
        return "<anyccl.Routing, " + std::to_string(self.tokens()) + " tokens, " +
               std::to_string(self.rows()) + " rows>";
      });
}

void bind_route(CommunicatorClass& c) {
  const nb::kw_only named;
  c.def("route", &Routing::make, "experts"_a, "nexperts"_a, named, "capacity"_a.none() = nb::none(),
        "padded"_a = false, docs::kRoute,
        nb::sig("def route(self, experts: object, nexperts: int, *, capacity: int | None = None, "
                "padded: bool = False) -> Routing"));
}

}  // namespace anyccl::python
