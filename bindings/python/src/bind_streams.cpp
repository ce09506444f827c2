// To Python: streams and events.

#include "bind.hpp"
#include "docs/streams.hpp"

namespace anyccl::python {

void bind_streams(nb::module_& m) {
  const auto timeout = "timeout"_a.none() = nb::none();
  nb::class_<Event> event(m, "Event", docs::kEvent);
  nb::class_<Stream>(m, "Stream", docs::kStream)
      .def(nb::new_([] { return std::make_shared<Stream>(); }))
      .def("synchronize", &Stream::synchronize, timeout, docs::kStreamSynchronize)
      .def("query", &Stream::query, docs::kStreamQuery)
      .def_prop_ro("done", &Stream::done, docs::kStreamDone)
      .def("run", &Stream::run, "function"_a, docs::kStreamRun,
           nb::sig("def run(self, function: collections.abc.Callable[[], object]) -> None"))
      .def(
          "wait_event", [](Stream& self, const Event& moment) { self.wait_event(moment.handle()); },
          "event"_a, docs::kStreamWaitEvent)
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Stream"))
      .def(
          "__exit__",
          [](Stream& self, nb::handle type, nb::handle, nb::handle) {
            if (type.is_none()) self.synchronize(std::nullopt);
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none())
      .def("__repr__", [](Stream& self) {
        return self.done() ? "<anyccl.Stream, done>" : "<anyccl.Stream, under way>";
      });
  event.def(nb::init<>())
      .def("record", &Event::record, "stream"_a, docs::kEventRecord)
      .def("query", &Event::query, docs::kEventQuery)
      .def_prop_ro("done", &Event::done, docs::kEventDone)
      .def("synchronize", &Event::synchronize, timeout, docs::kEventSynchronize)
      .def("elapsed_time", &Event::elapsed_time, "end"_a, docs::kEventElapsedTime)
      .def("__repr__", [](const Event& self) {
        return self.done() ? "<anyccl.Event, complete>" : "<anyccl.Event, not complete>";
      });
}

}  // namespace anyccl::python
