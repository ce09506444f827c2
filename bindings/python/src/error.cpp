#include "error.hpp"

namespace anyccl::python {

Outcome outcome_of(anycclResult_t code) {
  if (code == anycclSuccess) return {};
  const char* text = anycclGetLastError(nullptr);
  return {code, *text != '\0' ? text : anycclGetErrorString(code)};
}

nb::object exception_of(const Outcome& outcome) {
  const nb::object classes = nb::module_::import_("anyccl.errors").attr("by_code");
  return classes[nb::int_(static_cast<int>(outcome.code))](outcome.message.c_str());
}

void raise_object(nb::handle exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

void raise(anycclResult_t code, const std::string& message) {
  raise_object(exception_of({code, message}));
}

}  // namespace anyccl::python
