// The Python module anyccl.torch._C.

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

#include <thread>

#include "arena.hpp"
#include "backend.hpp"
#include "objects.hpp"
#include "waiting.hpp"

namespace anyccl::torch {
namespace {

// Set with the interpreter's lock, before it ends; read where it is ending.
std::thread::id ending_thread;

/// True if the interpreter is ending and lets only another thread go on.
bool is_interpreter_over() {
#if PY_VERSION_HEX >= 0x030d0000
  const bool finalizing = Py_IsFinalizing() != 0;
#else
  const bool finalizing = _Py_IsFinalizing() != 0;
#endif
  return (finalizing || Py_IsInitialized() == 0) && std::this_thread::get_id() != ending_thread;
}

}  // namespace

GilReleased::GilReleased() {
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) state_ = PyEval_SaveThread();
}

GilReleased::~GilReleased() {
  if (state_ == nullptr) return;
  while (is_interpreter_over())
    std::this_thread::sleep_for(std::chrono::hours(1));  // for the process to end
  PyEval_RestoreThread(static_cast<PyThreadState*>(state_));
}

bool is_main_thread() {
  thread_local const bool is_main = ::gettid() == ::getpid();
  return is_main;
}

void check_signals() {
  if (!is_main_thread() || Py_IsInitialized() == 0) return;
  const py::gil_scoped_acquire held;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

namespace {

using std::chrono::milliseconds;

void define_options(py::module_& module) {
  py::class_<Backend::Options, c10d::Backend::Options, c10::intrusive_ptr<Backend::Options>>(
      module, "Options",
      "The pg_options of init_process_group and new_group; the time limit is their own argument.\n"
      "\n"
      "reproducible  the level of reproducibility, 0 to 3; None: ANYCCL_REPRODUCIBLE's\n"
      "verify        each N-th collective is verified, 0: none; None: as ANYCCL_VERIFY says\n"
      "verify_later  collectives do not wait for that\n"
      "accumulate    torch.float32: sums and averages of float16 and bfloat16 are made in it and\n"
      "              rounded once, but not in reduce_scatter of a list, nor of sparse tensors\n"
      "\n"
      "All are equal on all ranks. Groups that are split off have the same where their own\n"
      "options do not say otherwise. docs/numbers says what they mean.")
      .def(py::init([](std::optional<int> reproducible, std::optional<int> verify,
                       std::optional<bool> verify_later, const py::object& accumulate) {
             auto options = c10::make_intrusive<Backend::Options>();
             Numbers& numbers = options->numbers;
             if (reproducible) numbers.reproducible = *reproducible;
             if (verify) numbers.verify = *verify;
             if (verify_later) numbers.verify_later = *verify_later ? 1 : 0;
             if (!accumulate.is_none() &&
                 !accumulate.is(py::module_::import("torch").attr("float32")))
               throw py::value_error("anyccl: accumulate is torch.float32 or None");
             if (!accumulate.is_none()) numbers.accumulate = anycclFloat32;
             return options;
           }),
           py::arg("reproducible") = py::none(), py::arg("verify") = py::none(),
           py::arg("verify_later") = py::none(), py::arg("accumulate") = py::none())
      .def_readwrite("_profiled_as", &Backend::Options::profiled_as)
      .def("__copy__",
           [](const Backend::Options& self) { return c10::make_intrusive<Backend::Options>(self); })
      .def("__deepcopy__", [](const Backend::Options& self, const py::dict&) {
        return c10::make_intrusive<Backend::Options>(self);
      });
}

void define_group(py::module_& module) {
  py::class_<Backend, c10d::Backend, c10::intrusive_ptr<Backend>>(
      module, "ProcessGroupAnyccl",
      "One rank of a process group. torch.distributed makes it: init_process_group(\"anyccl\").")
      .def(py::init([](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                       c10::intrusive_ptr<Backend::Options> options) {
             return c10::make_intrusive<Backend>(store, rank, size, std::move(options));
           }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("options"),
           py::call_guard<py::gil_scoped_release>(),
           "Joins as `rank` of `size`; returns when all ranks have. Raises DistBackendError after\n"
           "the timeout of the options, naming the ranks that are missing.")
      .def_property_readonly("options", [](Backend& self) { return self.getBackendOptions(); })
      .def("_set_default_timeout", &Backend::setTimeout, py::arg("timeout"),
           py::call_guard<py::gil_scoped_release>(), "For operations that are given no timeout.")
      .def(
          "_carry_on",
          [](Backend& self, const std::vector<int>& excluded) {
            Backend::LeftOver left = [&] {
              const py::gil_scoped_release released;
              return self.carry_on(excluded);
            }();
            return py::make_tuple(std::move(left.backend), std::move(left.gone));
          },
          py::arg("excluded"),
          "A group of the ranks that are left after a failure, and those that are gone.")
      .def("_use_store", &Backend::use_store, py::arg("store"),
           "Another store than the old group's. Before the group is used.")
      .def("_all_reduce_leaves", &Backend::all_reduce_leaves, py::arg("output"), py::arg("input"),
           py::arg("leaves"), py::arg("opts"), py::call_guard<py::gil_scoped_release>())
      .def(
          "_exchange_objects",
          [](Backend& self, const std::string& name, int what, const py::function& pickle,
             int root) {
            return exchange_objects(self, name, static_cast<anycclCollective_t>(what), pickle,
                                    root);
          },
          py::arg("name"), py::arg("what"), py::arg("pickle"), py::arg("root"))
      .def("_dump", &Backend::dump, py::arg("path"), py::call_guard<py::gil_scoped_release>(),
           "Writes what this rank remembers of its operations to a file, for `anyccl blame`.")
      .def(
          "get_error", [](Backend& self) { return static_cast<int>(self.getError()); },
          py::call_guard<py::gil_scoped_release>(),
          "0 while the group works; then 1: timeout, 2: communication failed, 3: another rank "
          "failed.");
}

void define_functions(py::module_& module) {
  module.def(
      "close_all",
      [](milliseconds timeout) {
        ending_thread = std::this_thread::get_id();
        const GilReleased released;
        Backend::close_all(timeout);
      },
      py::arg("timeout"),
      "Shuts down all process groups at the end of the process; aborts those that take longer.");
  module.def("enable_arena", &enable_arena, py::arg("least_bytes"));
  module.def("disable_arena", &disable_arena);
}

}  // namespace
}  // namespace anyccl::torch

PYBIND11_MODULE(_C, module) {
  module.attr("AnyOptions") = py::type::of<c10d::Backend::Options>();  // of every backend
  module.doc() = "The anyccl backend of torch.distributed.";
  anyccl::torch::define_options(module);
  anyccl::torch::define_group(module);
  anyccl::torch::define_functions(module);
}
