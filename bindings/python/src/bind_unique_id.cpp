// To Python: ids of communicators.

#include <nanobind/operators.h>

#include <cstring>
#include <functional>
#include <string_view>

#include "bind.hpp"
#include "docs/communicator.hpp"

namespace anyccl::python {
namespace {

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

}  // namespace

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

}  // namespace anyccl::python
