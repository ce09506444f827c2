#include "error.hpp"

#include <chrono>
#include <thread>

namespace anyccl::python {
namespace {

// Set with the interpreter lock held, before the interpreter ends; reads without the lock come
// after that.
bool exiting = false;
std::thread::id ending_thread;

bool is_over() {
#if PY_VERSION_HEX >= 0x030d0000
  const bool finalizing = Py_IsFinalizing() != 0;
#else
  const bool finalizing = _Py_IsFinalizing() != 0;
#endif
  return (finalizing || Py_IsInitialized() == 0) && std::this_thread::get_id() != ending_thread;
}

}  // namespace

void begin_exit() {
  exiting = true;
  ending_thread = std::this_thread::get_id();
}

bool is_exiting() {
  return exiting;
}

Unlocked::~Unlocked() {
  while (is_over()) std::this_thread::sleep_for(std::chrono::hours(1));
  PyEval_RestoreThread(state_);
}

Outcome outcome_of(anycclResult_t code) {
  if (code == anycclSuccess) return {};
  const char* text = anycclGetLastError(nullptr);
  return {code, *text != '\0' ? text : anycclGetErrorString(code)};
}

nb::object exception_of(const Outcome& outcome) {
  const nb::object classes = nb::module_::import_("anyccl.errors").attr("by_code");
  return classes[nb::int_(static_cast<int>(outcome.code))](outcome.message.c_str());
}

void raise(anycclResult_t code, const std::string& message) {
  const nb::object exception = exception_of({code, message});
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

}  // namespace anyccl::python
