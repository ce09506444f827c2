// To Python: how communicators come, what they are, and how they end.

#include <nanobind/stl/filesystem.h>

#include "bind.hpp"
#include "docs/communicator.hpp"
#include "docs/operators.hpp"

namespace anyccl::python {

void bind_creation(CommunicatorClass& c) {
  const nb::kw_only named;
  const auto name_arg = "name"_a.none() = nb::none();
  const auto wait_arg = "wait"_a = true;
  const auto timeout_arg = "timeout"_a.none() = nb::none();
  const auto reproducible_arg = "reproducible"_a.none() = nb::none();
  const auto verify_arg = "verify"_a.none() = nb::none();
  const auto verify_later_arg = "verify_later"_a.none() = nb::none();
  c.def_static(
       "from_env",
       [](std::optional<std::string> name, bool wait, Seconds timeout,
          std::optional<int> reproducible, std::optional<int> verify,
          std::optional<bool> verify_later) {
         return Communicator::from_env(
             {std::move(name), wait, timeout, reproducible, verify, verify_later});
       },
       named, name_arg, wait_arg, timeout_arg, reproducible_arg, verify_arg, verify_later_arg,
       docs::kFromEnv)
      .def_static(
          "from_unique_id",
          [](const anycclUniqueId& id, int rank, int size, std::optional<std::string> name,
             bool wait, Seconds timeout, std::optional<int> reproducible, std::optional<int> verify,
             std::optional<bool> verify_later) {
            return Communicator::from_unique_id(
                id, rank, size,
                {std::move(name), wait, timeout, reproducible, verify, verify_later});
          },
          "id"_a, "rank"_a, "size"_a, named, name_arg, wait_arg, timeout_arg, reproducible_arg,
          verify_arg, verify_later_arg, docs::kFromUniqueId)
      .def_static("init_all", &Communicator::init_all, "size"_a, docs::kInitAll)
      .def(
          "split",
          [](Communicator& self, std::optional<int> color, int key, std::optional<std::string> name,
             bool wait, Seconds timeout, std::optional<int> reproducible, std::optional<int> verify,
             std::optional<bool> verify_later) {
            return self.split(color.value_or(ANYCCL_SPLIT_NOCOLOR), key,
                              {std::move(name), wait, timeout, reproducible, verify, verify_later});
          },
          "color"_a.none(), "key"_a = 0, named, name_arg, wait_arg, timeout_arg, reproducible_arg,
          verify_arg, verify_later_arg, docs::kSplit,
          nb::sig("def split(self, color: int | None, key: int = 0, *, name: str | None = None, "
                  "wait: bool = True, timeout: float | None = None, "
                  "reproducible: int | None = None, verify: int | None = None, "
                  "verify_later: bool | None = None) -> Communicator | None"))
      .def(
          "shrink",
          [](Communicator& self, std::vector<int> excluded, bool after_failure,
             std::optional<std::string> name, bool wait, Seconds timeout,
             std::optional<int> reproducible, std::optional<int> verify,
             std::optional<bool> verify_later) {
            return self.shrink(
                std::move(excluded), after_failure,
                {std::move(name), wait, timeout, reproducible, verify, verify_later});
          },
          "excluded"_a = std::vector<int>(), named, "after_failure"_a = false, name_arg, wait_arg,
          timeout_arg, reproducible_arg, verify_arg, verify_later_arg, docs::kShrink,
          nb::sig("def shrink(self, excluded: collections.abc.Sequence[int] = (), *, "
                  "after_failure: bool = False, name: str | None = None, wait: bool = True, "
                  "timeout: float | None = None, "
                  "reproducible: int | None = None, verify: int | None = None, "
                  "verify_later: bool | None = None) -> Communicator"))
      .def(
          "grow",
          [](Communicator& self, int size, const anycclUniqueId* id,
             std::optional<std::string> name, bool wait, Seconds timeout,
             std::optional<int> reproducible, std::optional<int> verify,
             std::optional<bool> verify_later) {
            return self.grow(size, id,
                             {std::move(name), wait, timeout, reproducible, verify, verify_later});
          },
          "size"_a, "id"_a.none() = nb::none(), named, name_arg, wait_arg, timeout_arg,
          reproducible_arg, verify_arg, verify_later_arg, docs::kGrow,
          nb::sig("def grow(self, size: int, id: UniqueId | None = None, *, "
                  "name: str | None = None, wait: bool = True, "
                  "timeout: float | None = None, "
                  "reproducible: int | None = None, verify: int | None = None, "
                  "verify_later: bool | None = None) -> Communicator"))
      .def_prop_ro("ready", &Communicator::is_ready, docs::kReady)
      .def("wait_until_ready", &Communicator::wait_until_ready, "timeout"_a.none() = nb::none(),
           docs::kWaitUntilReady)
      .def("finalize", &Communicator::finalize, "timeout"_a.none() = nb::none(), docs::kFinalize)
      .def("destroy", &Communicator::destroy, docs::kDestroy)
      .def("abort", &Communicator::abort, docs::kAbort)
      .def("revoke", &Communicator::revoke, docs::kRevoke)
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Communicator"))
      .def(
          "__exit__",
          [](Communicator& self, nb::handle type, nb::handle, nb::handle) {
            type.is_none() ? self.destroy() : self.abort();
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());
}

namespace {

void bind_creation_of_operators(CommunicatorClass& c) {
  using Kind = Operator::Kind;
  const auto loc = [](Kind kind) {
    return [kind](Communicator& self, nb::handle value) {
      return Operator::create_locator(self, kind, value);
    };
  };
  c.def("pre_mul_sum", &Operator::create_product_sum, "factor"_a, "dtype"_a, docs::kPreMulSumCreate,
        nb::sig("def pre_mul_sum(self, factor: object, dtype: object) -> PreMulSum"))
      .def("create_operator", &Operator::create_of_function, "function"_a, docs::kCreateOperator,
           nb::sig("def create_operator(self, function: "
                   "collections.abc.Callable[[typing.Any, typing.Any], object]) -> Operator"))
      .def("max_loc", loc(Kind::max_loc), "value"_a = "float64", docs::kMaxLoc,
           nb::sig("def max_loc(self, value: object = \"float64\") -> Operator"))
      .def("min_loc", loc(Kind::min_loc), "value"_a = "float64", docs::kMinLoc,
           nb::sig("def min_loc(self, value: object = \"float64\") -> Operator"));
}

}  // namespace

void bind_state(CommunicatorClass& c) {
  c.def_prop_ro("rank", &Communicator::rank, docs::kRank)
      .def_prop_ro("size", &Communicator::size, docs::kSize)
      .def_prop_ro("failure", &Communicator::failure, docs::kFailure,
                   nb::sig("def failure(self) -> BaseException | None"))
      .def_prop_ro("last_plan", &Communicator::last_plan, docs::kLastPlan)
      .def(
          "dump",
          [](Communicator& self, nb::handle path) {
            const nb::object bytes = nb::module_::import_("os").attr("fsencode")(path);
            self.dump(std::string(nb::cast<nb::bytes>(bytes).c_str()));
          },
          "path"_a, docs::kDump, nb::sig("def dump(self, path: str | os.PathLike[str]) -> None"))
      .def(
          "metrics",
          [](Communicator& self) {
            const std::string text = self.metrics();
            return nb::module_::import_("json").attr("loads")(text);
          },
          docs::kMetrics, nb::sig("def metrics(self) -> dict[str, typing.Any]"))
      .def_prop_ro("completed", &Communicator::completed, docs::kCompleted,
                   nb::sig("def completed(self) -> tuple[int, int]"))
      .def_prop_ro("survivors", &Communicator::survivors, docs::kSurvivors,
                   nb::sig("def survivors(self) -> list[int]"))
      .def_prop_rw("timeout", &Communicator::timeout, &Communicator::set_timeout, nb::arg().none(),
                   docs::kTimeout)
      .def("__repr__", &Communicator::text);
  bind_creation_of_operators(c);
}

void bind_metrics(nb::module_& m) {
  m.def(
      "metrics_text",
      [] {
        std::string kept;
        raise_unless_ok(unlocked([&] {
          const char* text = "";
          const anycclResult_t result = anycclMetrics(&text);
          kept = text;
          return result;
        }));
        return kept;
      },
      docs::kMetricsText);
}

void bind_algorithms(nb::module_& m) {
  m.def(
      "load_algorithms",
      [](const std::filesystem::path& path) {
        raise_unless_ok(unlocked([&] { return anycclLoadAlgorithms(path.c_str()); }));
      },
      "path"_a, docs::kLoadAlgorithms);
}

}  // namespace anyccl::python
