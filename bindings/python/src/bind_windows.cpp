// To Python: one-sided operations.

#include "bind.hpp"
#include "docs/windows.hpp"
#include "window.hpp"

namespace anyccl::python {

#define ANYCCL_SIGNAL "signal: int = 0, context: int = 0, " ANYCCL_STREAM

void bind_window(nb::module_& m) {
  const nb::kw_only named;
  const auto stream = "stream"_a.none() = nb::none();
  nb::class_<Window>(m, "Window", docs::kWindow)
      .def_prop_ro("array", &Window::array, docs::kWindowArray,
                   nb::sig("def array(self) -> typing.Any"))
      .def(
          "put",
          [](Window& self, nb::handle x, int peer, std::int64_t offset, int signal, int context,
             const StreamPtr& in) {
            return self.put(x, peer, offset, {signal, context}, in);
          },
          "x"_a, "peer"_a, "offset"_a = 0, named, "signal"_a = 0, "context"_a = 0, stream,
          docs::kWindowPut,
          nb::sig("def put(self, x: object, peer: int, offset: int = 0, *, " ANYCCL_SIGNAL
                  ") -> None"))
      .def("close", &Window::close, docs::kWindowClose)
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Window"))
      .def(
          "__exit__",
          [](Window& self, nb::handle type, nb::handle, nb::handle) {
            if (type.is_none()) self.close();
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none())
      .def("__repr__", [](const Window& self) {
        return self.is_closed() ? "<anyccl.Window, closed>" : "<anyccl.Window>";
      });
}

void bind_windows(CommunicatorClass& c) {
  const nb::kw_only named;
  const auto stream = "stream"_a.none() = nb::none();
  c.def("window", &Window::make, "array"_a, docs::kWindowCreate,
        nb::sig("def window(self, array: object) -> Window"))
      .def(
          "signal",
          [](Communicator& self, int peer, int index, int context, const StreamPtr& in) {
            return signal(self, peer, {index, context}, in);
          },
          "peer"_a, named, "signal"_a = 0, "context"_a = 0, stream, docs::kSignal,
          nb::sig("def signal(self, peer: int, *, " ANYCCL_SIGNAL ") -> None"))
      .def(
          "wait_signal",
          [](Communicator& self, int peer, int count, int index, int context, const StreamPtr& in) {
            return wait_signal(self, peer, count, {index, context}, in);
          },
          "peer"_a, "count"_a = 1, named, "signal"_a = 0, "context"_a = 0, stream,
          docs::kWaitSignal,
          nb::sig("def wait_signal(self, peer: int, count: int = 1, *, " ANYCCL_SIGNAL
                  ") -> None"));
}

}  // namespace anyccl::python
