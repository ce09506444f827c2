// To Python: messages, barriers, and objects.

#include "bind.hpp"
#include "collectives.hpp"
#include "docs/messages.hpp"
#include "objects.hpp"

namespace anyccl::python {

void bind_messages(CommunicatorClass& c) {
  const auto async_op = "async_op"_a = false;
  const auto stream = "stream"_a.none() = nb::none();
  const auto timeout = "timeout"_a.none() = nb::none();
  const nb::kw_only named;
  c.def("barrier", with_options(barrier), named, async_op, stream, timeout, docs::kBarrier,
        nb::sig("def barrier(self, *, " ANYCCL_OPTIONS " -> Work | None"))
      .def("send", with_options(send), "x"_a, "dst"_a, named, "tag"_a = 0, async_op, stream,
           timeout, docs::kSend,
           nb::sig("def send(self, x: object, dst: int, *, tag: int = 0, " ANYCCL_OPTIONS
                   " -> Work | None"))
      .def(
          "recv", with_options(recv), "out"_a, "src"_a.none() = nb::none(), named, "tag"_a = 0,
          async_op, stream, timeout, docs::kRecv,
          nb::sig(
              "def recv(self, out: object, src: int | None = None, *, tag: int = 0, " ANYCCL_OPTIONS
              " -> typing.Any"))
      .def(
          "all_to_all_w",
          [](Communicator& self, const nb::sequence& xs, const nb::sequence& outs,
             StreamPtr in_stream) {
            Options how;
            how.stream = std::move(in_stream);
            return all_to_all_w(self, how, xs, outs);
          },
          "xs"_a, "outs"_a, named, stream, docs::kAllToAllW,
          nb::sig("def all_to_all_w(self, xs: collections.abc.Sequence[object | None], outs: "
                  "collections.abc.Sequence[object | None], *, " ANYCCL_STREAM ") -> typing.Any"));
}

namespace {

/// A function of ../anyccl/objects.py, with the communicator as its first argument.
template <typename... A>
nb::object call(const char* name, Communicator& c, const A&... arguments) {
  return nb::module_::import_("anyccl.objects").attr(name)(c.shared_from_this(), arguments...);
}

}  // namespace

void bind_objects(CommunicatorClass& c) {
  using H = nb::handle;
  const nb::kw_only named;
  const auto root = "root"_a = 0;
  c.def(
       "all_gather_object", [](Communicator& self, H obj) { return call("all_gather", self, obj); },
       "obj"_a.none(), docs::kAllGatherObject,
       nb::sig("def all_gather_object(self, obj: object) -> list[typing.Any]"))
      .def(
          "broadcast_object",
          [](Communicator& self, H obj, int at) { return call("broadcast", self, obj, at); },
          "obj"_a.none() = nb::none(), root, docs::kBroadcastObject,
          nb::sig("def broadcast_object(self, obj: object = None, root: int = 0) -> typing.Any"))
      .def(
          "gather_object",
          [](Communicator& self, H obj, int at) { return call("gather", self, obj, at); },
          "obj"_a.none(), root, docs::kGatherObject,
          nb::sig("def gather_object(self, obj: object, root: int = 0)"
                  " -> list[typing.Any] | None"))
      .def(
          "scatter_object",
          [](Communicator& self, H objs, int at) { return call("scatter", self, objs, at); },
          "objs"_a.none() = nb::none(), root, docs::kScatterObject,
          nb::sig("def scatter_object(self, objs: collections.abc.Sequence[object] | None = None, "
                  "root: int = 0) -> typing.Any"))
      .def(
          "_exchange_payloads",
          [](Communicator& self, int what, const nb::callable& pickle, int at) {
            return exchange_payloads(self, static_cast<anycclCollective_t>(what), pickle, at);
          },
          "what"_a, "pickle"_a, root,
          nb::sig("def _exchange_payloads(self, what: int, pickle: "
                  "collections.abc.Callable[[], list[bytes]], root: int = 0)"
                  " -> list[tuple[bool, bytes]]"))
      .def("_probe_bytes", &probe_bytes, "src"_a.none(), "tag"_a,
           nb::sig("def _probe_bytes(self, src: int | None, tag: int) -> tuple[int, int]"))
      .def("_recv_found", &recv_found, "out"_a, "src"_a, "tag"_a,
           nb::sig("def _recv_found(self, out: object, src: int, tag: int) -> Work | None"))
      .def(
          "send_object",
          [](Communicator& self, H obj, int dst, int tag) { call("send", self, obj, dst, tag); },
          "obj"_a.none(), "dst"_a, named, "tag"_a = 0, docs::kSendObject,
          nb::sig("def send_object(self, obj: object, dst: int, *, tag: int = 0) -> None"))
      .def(
          "recv_object",
          [](Communicator& self, std::optional<int> src, int tag) {
            return call("recv", self, src, tag);
          },
          "src"_a.none() = nb::none(), named, "tag"_a = 0, docs::kRecvObject,
          nb::sig("def recv_object(self, src: int | None = None, *, tag: int = 0)"
                  " -> typing.Any"));
}

}  // namespace anyccl::python
