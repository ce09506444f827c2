// To Python: collectives.

#include "bind.hpp"
#include "collectives.hpp"
#include "docs/collectives.hpp"
#include "docs/v_forms.hpp"

namespace anyccl::python {

Options options_of(bool async, nb::handle stream, nb::handle timeout) {
  Options how;
  how.async = async;
  if (!stream.is_none() && !nb::try_cast(stream, how.stream))
    throw nb::type_error("stream is not an anyccl.Stream");
  if (!timeout.is_none() && !nb::try_cast(timeout, how.timeout))
    throw nb::type_error("timeout is not a number of seconds");
  return how;
}

void bind_collectives(CommunicatorClass& c) {
  const auto x = "x"_a.none();
  const auto op = "op"_a = "sum";
  const auto root = "root"_a = 0;
  const auto out = "out"_a.none() = nb::none();
  const auto accumulate = "accumulate"_a.none() = nb::none();
  const auto leaves = "leaves"_a.none() = nb::none();
  const auto async_op = "async_op"_a = false;
  const auto stream = "stream"_a.none() = nb::none();
  const auto timeout = "timeout"_a.none() = nb::none();
  const nb::kw_only named;
  c.def("all_reduce", with_options(all_reduce), x, op, named, out, accumulate, leaves, async_op,
        stream, timeout, docs::kAllReduce,
        nb::sig("def all_reduce(self, x: object, " ANYCCL_OP ANYCCL_SUM_END))
      .def("broadcast", with_options(broadcast), x, root, named, out, async_op, stream, timeout,
           docs::kBroadcast,
           nb::sig("def broadcast(self, x: object | None, root: int = 0" ANYCCL_END))
      .def("reduce", with_options(reduce), x, op, root, named, out, async_op, stream, timeout,
           docs::kReduce,
           nb::sig("def reduce(self, x: object, " ANYCCL_OP ", root: int = 0" ANYCCL_END))
      .def("scan", with_options(scan), x, op, named, out, async_op, stream, timeout, docs::kScan,
           nb::sig("def scan(self, x: object, " ANYCCL_OP ANYCCL_END))
      .def("exscan", with_options(exscan), x, op, named, out, async_op, stream, timeout,
           docs::kExscan, nb::sig("def exscan(self, x: object, " ANYCCL_OP ANYCCL_END))
      .def("reduce_scatter", with_options(reduce_scatter), x, op, named, out, accumulate, leaves,
           async_op, stream, timeout, docs::kReduceScatter,
           nb::sig("def reduce_scatter(self, x: object, " ANYCCL_OP ANYCCL_SUM_END))
      .def("all_gather", with_options(all_gather), x, named, out, async_op, stream, timeout,
           docs::kAllGather, nb::sig("def all_gather(self, x: object" ANYCCL_END))
      .def("gather", with_options(gather), x, root, named, out, async_op, stream, timeout,
           docs::kGather, nb::sig("def gather(self, x: object, root: int = 0" ANYCCL_END))
      .def("scatter", with_options(scatter), x, root, named, out, async_op, stream, timeout,
           docs::kScatter, nb::sig("def scatter(self, x: object | None, root: int = 0" ANYCCL_END))
      .def("all_to_all", with_options(all_to_all), x, named, out, async_op, stream, timeout,
           docs::kAllToAll, nb::sig("def all_to_all(self, x: object" ANYCCL_END));
}

// --- with blocks of different sizes ---

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
