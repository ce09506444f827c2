// To Python: works and groups.

#include "bind.hpp"
#include "docs/operations.hpp"
#include "group.hpp"

namespace anyccl::python {

void bind_work(nb::module_& m) {
  nb::class_<Work>(m, "Work", docs::kWork)
      .def("wait", &Work::wait, "timeout"_a.none() = nb::none(), docs::kWorkWait,
           nb::sig("def wait(self, timeout: float | None = None) -> typing.Any"))
      .def("limit", &Work::set_limit, "seconds"_a.none(), docs::kWorkLimit)
      .def("test", &Work::test, docs::kWorkTest)
      .def_prop_ro("done", &Work::done, docs::kWorkDone)
      .def_prop_ro("source", &Work::source, docs::kWorkSource)
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> Work"))
      .def(
          "__exit__",
          [](Work& work, nb::handle type, nb::handle, nb::handle) {
            if (type.is_none()) work.wait(std::nullopt);
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none())
      .def("__repr__", [](Work& work) {
        return work.done() ? "<anyccl.Work, done>" : "<anyccl.Work, under way>";
      });
}

void bind_groups(nb::module_& m) {
  nb::class_<Group>(m, "_Group", docs::kGroup)
      .def("__enter__", &Group::enter)
      .def(
          "__exit__",
          [](Group& group, nb::handle type, nb::handle, nb::handle) {
            group.leave(!type.is_none());
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());
  m.def(
      "group", [] { return std::make_shared<Group>(); }, docs::kGroup);
  nb::class_<Sequence>(m, "_Sequence", docs::kSequence)
      .def("__enter__", &Sequence::enter)
      .def(
          "__exit__",
          [](Sequence& sequence, nb::handle, nb::handle, nb::handle) { sequence.exit(); },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());
  m.def(
      "sequence", [](const CommunicatorPtr& comm) { return Sequence(comm); }, "comm"_a,
      docs::kSequence);
  m.def("_need_no_group", need_no_group, "what"_a);
}

}  // namespace anyccl::python
