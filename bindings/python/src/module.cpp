// The module anyccl._core: the library as Python sees it. The package re-exports it.

#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <functional>
#include <string_view>

#include "collectives.hpp"
#include "docs.hpp"

namespace anyccl::python {
namespace {

using nb::literals::operator""_a;

anycclUniqueId id_from(const nb::bytes& bytes) {
  anycclUniqueId id;
  if (bytes.size() != sizeof id.internal)
    raise_invalid("a unique id has " + std::to_string(sizeof id.internal) + " bytes, not " +
                  std::to_string(bytes.size()));
  std::memcpy(id.internal, bytes.c_str(), sizeof id.internal);
  return id;
}

nb::bytes bytes_of(const anycclUniqueId& id) {
  return nb::bytes(id.internal, sizeof id.internal);
}

std::string_view text_of(const anycclUniqueId& id) {
  return {id.internal, sizeof id.internal};
}

void bind_unique_id(nb::module_& m) {
  nb::class_<anycclUniqueId>(m, "UniqueId", docs::kUniqueId)
      .def_static(
          "create",
          [] {
            anycclUniqueId id;
            raise_unless_ok(unlocked([&] { return anycclGetUniqueId(&id); }));
            return id;
          },
          docs::kUniqueIdCreate)
      .def(
          "__init__",
          [](anycclUniqueId* self, const nb::bytes& data) {
            new (self) anycclUniqueId(id_from(data));
          },
          "data"_a, "The id whose bytes(id) is `data`.")
      .def("__bytes__", bytes_of)
      .def(
          "__eq__",
          [](const anycclUniqueId& a, nb::handle other) {
            return nb::isinstance<anycclUniqueId>(other) &&
                   text_of(a) == text_of(nb::cast<const anycclUniqueId&>(other));
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const anycclUniqueId& id) {
             return static_cast<Py_ssize_t>(std::hash<std::string_view>()(text_of(id)) >> 1);
           })
      .def("__reduce__",
           [](nb::handle self) {
             return nb::make_tuple(self.type(),
                                   nb::make_tuple(bytes_of(nb::cast<const anycclUniqueId&>(self))));
           })
      .def("__repr__", [](const anycclUniqueId&) { return "<anyccl.UniqueId>"; });  // it is secret
}

void bind_operators(nb::module_& m) {
  nb::enum_<ReduceOp>(m, "ReduceOp", docs::kReduceOp)
      .value("sum", ReduceOp::sum)
      .value("prod", ReduceOp::prod)
      .value("max", ReduceOp::max)
      .value("min", ReduceOp::min)
      .value("avg", ReduceOp::avg)
      .value("land", ReduceOp::land)
      .value("lor", ReduceOp::lor)
      .value("lxor", ReduceOp::lxor)
      .value("band", ReduceOp::band)
      .value("bor", ReduceOp::bor)
      .value("bxor", ReduceOp::bxor);
  nb::class_<PreMulSum>(m, "PreMulSum", docs::kPreMulSum).def("__repr__", [](const PreMulSum& op) {
    return "<anyccl.PreMulSum of " + std::string(info(op.dtype).name) + ">";
  });
}

void bind_work(nb::module_& m) {
  nb::class_<Work>(m, "Work", docs::kWork)
      .def("wait", &Work::wait, docs::kWorkWait, nb::sig("def wait(self) -> typing.Any"))
      .def("test", &Work::test, docs::kWorkTest)
      .def_prop_ro("done", &Work::done, docs::kWorkDone)
      .def_prop_ro("source", &Work::source, docs::kWorkSource)
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> Work"))
      .def(
          "__exit__",
          [](Work& work, nb::handle type, nb::handle, nb::handle) {
            if (type.is_none()) work.wait();
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none())
      .def("__repr__", [](Work& work) {
        return work.done() ? "<anyccl.Work, done>" : "<anyccl.Work, under way>";
      });
}

/// The bits of `factor` as `dtype`.
std::shared_ptr<PreMulSum> pre_mul_sum(Communicator& c, nb::handle factor, nb::handle type) {
  const DType dtype = dtype_from(type);
  const nb::object bits =
      nb::module_::import_("numpy").attr("asarray")(factor).attr("astype")(numpy_dtype(dtype));
  const auto bytes = nb::cast<nb::bytes>(bits.attr("tobytes")());
  if (bytes.size() != info(dtype).bytes) raise_invalid("factor is not one number");
  return std::make_shared<PreMulSum>(c.shared_from_this(), dtype, bytes.c_str());
}

void bind_creation(nb::class_<Communicator>& c) {
  c.def_static(
       "from_env", [] { return Communicator::made(anycclCommInitEnv); }, docs::kFromEnv)
      .def_static(
          "from_unique_id",
          [](const anycclUniqueId& id, int rank, int size) {
            return Communicator::made(
                [&](anycclComm_t* comm) { return anycclCommInitRank(comm, size, id, rank); });
          },
          "id"_a, "rank"_a, "size"_a, docs::kFromUniqueId)
      .def_static(
          "init_all",
          [](int size) {
            std::vector<anycclComm_t> handles(static_cast<std::size_t>(size > 0 ? size : 0));
            raise_unless_ok(
                unlocked([&] { return anycclCommInitAll(handles.data(), size, nullptr); }));
            std::vector<CommunicatorPtr> comms;
            for (const anycclComm_t handle : handles)
              comms.push_back(std::make_shared<Communicator>(handle));
            return comms;
          },
          "size"_a, docs::kInitAll)
      .def(
          "split",
          [](Communicator& self, std::optional<int> color, int key) {
            return self.split(color.value_or(ANYCCL_SPLIT_NOCOLOR), key);
          },
          "color"_a.none(), "key"_a = 0, docs::kSplit,
          nb::sig("def split(self, color: int | None, key: int = 0) -> Communicator | None"));
}

void bind_state(nb::class_<Communicator>& c) {
  c.def_prop_ro("rank", &Communicator::rank, docs::kRank)
      .def_prop_ro("size", &Communicator::size, docs::kSize)
      .def_prop_ro("failure", &Communicator::failure, docs::kFailure,
                   nb::sig("def failure(self) -> anyccl.errors.Error | None"))
      .def_prop_ro("last_plan", &Communicator::last_plan, docs::kLastPlan)
      .def_prop_rw("timeout", &Communicator::timeout, &Communicator::set_timeout, nb::arg().none(),
                   docs::kTimeout)
      .def("destroy", &Communicator::destroy, docs::kDestroy)
      .def("abort", &Communicator::abort, docs::kAbort)
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Communicator"))
      .def(
          "__exit__",
          [](Communicator& self, nb::handle type, nb::handle, nb::handle) {
            type.is_none() ? self.destroy() : self.abort();
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none())
      .def("__repr__",
           [](const Communicator& self) {
             return "<anyccl.Communicator, rank " + std::to_string(self.rank()) + " of " +
                    std::to_string(self.size()) + (self.is_destroyed() ? ", ended>" : ">");
           })
      .def("pre_mul_sum", &pre_mul_sum, "factor"_a, "dtype"_a, docs::kPreMulSumCreate,
           nb::sig("def pre_mul_sum(self, factor: object, dtype: object) -> PreMulSum"));
}

// Signatures of the operations, which nanobind would write with its own names.
#define ANYCCL_OP "op: ReduceOp | str | PreMulSum = \"sum\""
#define ANYCCL_END ", *, out: object | None = None, async_op: bool = False) -> typing.Any"

void bind_collectives(nb::class_<Communicator>& c) {
  const auto x = "x"_a.none();
  const auto op = "op"_a = "sum";
  const auto root = "root"_a = 0;
  const auto out = "out"_a.none() = nb::none();
  const auto async_op = "async_op"_a = false;
  const nb::kw_only named;
  c.def("all_reduce", all_reduce, x, op, named, out, async_op, docs::kAllReduce,
        nb::sig("def all_reduce(self, x: object, " ANYCCL_OP ANYCCL_END))
      .def("broadcast", broadcast, x, root, named, out, async_op, docs::kBroadcast,
           nb::sig("def broadcast(self, x: object | None, root: int = 0" ANYCCL_END))
      .def("reduce", reduce, x, op, root, named, out, async_op, docs::kReduce,
           nb::sig("def reduce(self, x: object, " ANYCCL_OP ", root: int = 0" ANYCCL_END))
      .def("scan", scan, x, op, named, out, async_op, docs::kScan,
           nb::sig("def scan(self, x: object, " ANYCCL_OP ANYCCL_END))
      .def("exscan", exscan, x, op, named, out, async_op, docs::kExscan,
           nb::sig("def exscan(self, x: object, " ANYCCL_OP ANYCCL_END))
      .def("reduce_scatter", reduce_scatter, x, op, named, out, async_op, docs::kReduceScatter,
           nb::sig("def reduce_scatter(self, x: object, " ANYCCL_OP ANYCCL_END))
      .def("all_gather", all_gather, x, named, out, async_op, docs::kAllGather,
           nb::sig("def all_gather(self, x: object" ANYCCL_END))
      .def("gather", gather, x, root, named, out, async_op, docs::kGather,
           nb::sig("def gather(self, x: object, root: int = 0" ANYCCL_END))
      .def("scatter", scatter, x, root, named, out, async_op, docs::kScatter,
           nb::sig("def scatter(self, x: object | None, root: int = 0" ANYCCL_END))
      .def("all_to_all", all_to_all, x, named, out, async_op, docs::kAllToAll,
           nb::sig("def all_to_all(self, x: object" ANYCCL_END))
      .def("barrier", barrier, named, async_op, docs::kBarrier,
           nb::sig("def barrier(self, *, async_op: bool = False) -> Work | None"))
      .def("send", send, x, "dst"_a, named, "tag"_a = 0, async_op, docs::kSend,
           nb::sig("def send(self, x: object, dst: int, *, tag: int = 0, async_op: bool = False)"
                   " -> Work | None"))
      .def("recv", recv, "out"_a, "src"_a.none() = nb::none(), named, "tag"_a = 0, async_op,
           docs::kRecv,
           nb::sig("def recv(self, out: object, src: int | None = None, *, tag: int = 0,"
                   " async_op: bool = False) -> typing.Any"));
}

#define ANYCCL_COUNTS "counts: collections.abc.Sequence[int]"
#define ANYCCL_DISPLS ", *, displs: collections.abc.Sequence[int] | None = None"
#define ANYCCL_V_END \
  ANYCCL_DISPLS ", out: object | None = None, async_op: bool = False) -> typing.Any"

void bind_v_forms(nb::class_<Communicator>& c) {
  const auto x = "x"_a.none();
  const auto counts = "counts"_a;
  const auto root_counts = "counts"_a.none() = nb::none();
  const auto displs = "displs"_a.none() = nb::none();
  const auto root = "root"_a = 0;
  const auto out = "out"_a.none() = nb::none();
  const auto async_op = "async_op"_a = false;
  const nb::kw_only named;
  c.def("all_to_all_v", all_to_all_v, x, "send_counts"_a, "recv_counts"_a, named,
        "send_displs"_a.none() = nb::none(), "recv_displs"_a.none() = nb::none(), out, async_op,
        docs::kAllToAllV,
        nb::sig("def all_to_all_v(self, x: object, send_counts: collections.abc.Sequence[int], "
                "recv_counts: collections.abc.Sequence[int], *, "
                "send_displs: collections.abc.Sequence[int] | None = None, "
                "recv_displs: collections.abc.Sequence[int] | None = None, "
                "out: object | None = None, async_op: bool = False) -> typing.Any"))
      .def("all_gather_v", all_gather_v, x, counts, named, displs, out, async_op, docs::kAllGatherV,
           nb::sig("def all_gather_v(self, x: object, " ANYCCL_COUNTS ANYCCL_V_END))
      .def("reduce_scatter_v", reduce_scatter_v, x, counts, "op"_a = "sum", named, displs, out,
           async_op, docs::kReduceScatterV,
           nb::sig("def reduce_scatter_v(self, x: object, " ANYCCL_COUNTS
                   ", " ANYCCL_OP ANYCCL_V_END))
      .def("gather_v", gather_v, x, root_counts, root, named, displs, out, async_op, docs::kGatherV,
           nb::sig("def gather_v(self, x: object, " ANYCCL_COUNTS
                   " | None = None, root: int = 0" ANYCCL_V_END))
      .def("scatter_v", scatter_v, x, root_counts, root, named, displs, out, async_op,
           docs::kScatterV,
           nb::sig("def scatter_v(self, x: object | None, " ANYCCL_COUNTS
                   " | None = None, root: int = 0" ANYCCL_V_END));
}

}  // namespace
}  // namespace anyccl::python

NB_MODULE(_core, m) {
  using namespace anyccl::python;
  nb::set_leak_warnings(false);  // objects may live until the process ends: see begin_exit()
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(begin_exit));
  m.doc() = "The interface of the library; use the package anyccl, which re-exports it.";
  m.attr("__version__") = ANYCCL_PYTHON_VERSION;
  bind_memory(m);
  bind_unique_id(m);
  bind_operators(m);
  bind_work(m);
  nb::class_<Communicator> communicator(m, "Communicator", docs::kCommunicator);
  bind_creation(communicator);
  bind_state(communicator);
  bind_collectives(communicator);
  bind_v_forms(communicator);
}
