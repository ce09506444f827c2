// The module anyccl._core: the library as Python sees it. The package re-exports it.

#include "arena.hpp"
#include "bind.hpp"
#include "docs/communicator.hpp"

NB_MODULE(_core, m) {
  using namespace anyccl::python;
  nb::set_leak_warnings(false);  // objects may live until the process ends: see begin_exit()
  watch_exit();
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(begin_exit));
  m.doc() = "The interface of the library; use the package anyccl, which re-exports it.";
  m.attr("__version__") = ANYCCL_PYTHON_VERSION;
  bind_memory(m);
  bind_arena(m);
  bind_unique_id(m);
  bind_operators(m);
  bind_streams(m);
  bind_work(m);
  bind_groups(m);
  nb::class_<Communicator> communicator(m, "Communicator", docs::kCommunicator);
  bind_creation(communicator);
  bind_state(communicator);
  bind_collectives(communicator);
  bind_messages(communicator);
  bind_v_forms(communicator);
  bind_objects(communicator);
  bind_routing(m);
  bind_sparse(m);
  bind_codec(m);
  bind_route(communicator);
  bind_window(m);
  bind_windows(communicator);
  bind_neighbors(m);
  bind_metrics(m);
  bind_algorithms(m);
}
