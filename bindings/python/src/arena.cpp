#include "arena.hpp"

#include "dtype.hpp"

namespace anyccl::python {
namespace {

using nb::literals::operator""_a;

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto* const block = nb::inst_ptr<ArenaBlock>(nb::handle(self));
  return PyBuffer_FillInfo(view, self, block->data(), static_cast<Py_ssize_t>(block->bytes()), 0,
                           flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

ArenaBlock::ArenaBlock(std::size_t bytes) : bytes_(bytes) {
  raise_unless_ok(unlocked([&] { return anycclMemAlloc(&data_, bytes == 0 ? 1 : bytes); }));
}

ArenaBlock::~ArenaBlock() {
  if (!is_exiting()) static_cast<void>(anycclMemFree(data_));
}

void bind_arena(nb::module_& m) {
  nb::class_<ArenaBlock>(m, "_ArenaBlock", nb::type_slots(slots), nb::is_weak_referenceable(),
                         "Memory that peers can read.")
      .def(nb::init<std::size_t>(), "bytes"_a);
  m.def(
      "_numpy_dtype", [](nb::handle what) { return numpy_dtype(dtype_from(what)); }, "what"_a,
      nb::sig("def _numpy_dtype(what: object) -> typing.Any"));
}

}  // namespace anyccl::python
