// To Python: collectives with blocks of different sizes.

#include "bind.hpp"
#include "collectives.hpp"
#include "docs/v_forms.hpp"

namespace anyccl::python {

#define ANYCCL_COUNTS "counts: " ANYCCL_SEQUENCE
#define ANYCCL_DISPLS ", *, displs: " ANYCCL_SEQUENCE " | None = None"
#define ANYCCL_V_END ANYCCL_DISPLS ", " ANYCCL_OUT ANYCCL_OPTIONS " -> typing.Any"

void bind_v_forms(CommunicatorClass& c) {
  const auto x = "x"_a.none();
  const auto counts = "counts"_a;
  const auto root_counts = "counts"_a.none() = nb::none();
  const auto displs = "displs"_a.none() = nb::none();
  const auto root = "root"_a = 0;
  const auto out = "out"_a.none() = nb::none();
  const auto async_op = "async_op"_a = false;
  const auto stream = "stream"_a.none() = nb::none();
  const auto timeout = "timeout"_a.none() = nb::none();
  const nb::kw_only named;
  c.def("all_to_all_v", with_options(all_to_all_v), x, "send_counts"_a, "recv_counts"_a, named,
        "send_displs"_a.none() = nb::none(), "recv_displs"_a.none() = nb::none(), out, async_op,
        stream, timeout, docs::kAllToAllV,
        nb::sig("def all_to_all_v(self, x: object, send_counts: " ANYCCL_SEQUENCE ", "
                "recv_counts: " ANYCCL_SEQUENCE ", *, "
                "send_displs: " ANYCCL_SEQUENCE " | None = None, "
                "recv_displs: " ANYCCL_SEQUENCE " | None = None, "
                "" ANYCCL_OUT ANYCCL_OPTIONS " -> typing.Any"))
      .def("all_gather_v", with_options(all_gather_v), x, counts, named, displs, out, async_op,
           stream, timeout, docs::kAllGatherV,
           nb::sig("def all_gather_v(self, x: object, " ANYCCL_COUNTS ANYCCL_V_END))
      .def("reduce_scatter_v", with_options(reduce_scatter_v), x, counts, "op"_a = "sum", named,
           displs, out, async_op, stream, timeout, docs::kReduceScatterV,
           nb::sig("def reduce_scatter_v(self, x: object, " ANYCCL_COUNTS
                   ", " ANYCCL_OP ANYCCL_V_END))
      .def("gather_v", with_options(gather_v), x, root_counts, root, named, displs, out, async_op,
           stream, timeout, docs::kGatherV,
           nb::sig("def gather_v(self, x: object, " ANYCCL_COUNTS
                   " | None = None, root: int = 0" ANYCCL_V_END))
      .def("scatter_v", with_options(scatter_v), x, root_counts, root, named, displs, out, async_op,
           stream, timeout, docs::kScatterV,
           nb::sig("def scatter_v(self, x: object | None, " ANYCCL_COUNTS
                   " | None = None, root: int = 0" ANYCCL_V_END));
}

}  // namespace anyccl::python
