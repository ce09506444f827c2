// To Python: operators.

#include "bind.hpp"
#include "docs/operators.hpp"

namespace anyccl::python {

void bind_operators(nb::module_& m) {
  nb::enum_<ReduceOp>(m, "ReduceOp", docs::kReduceOp)
      .value("sum", ReduceOp::sum)
      .value("prod", ReduceOp::prod)
      .value("max", ReduceOp::max)
      .value("min", ReduceOp::min)
      .value("avg", ReduceOp::avg)
      .value("land", ReduceOp::land)
      .value("lor", ReduceOp::lor)
      .value("lxor", ReduceOp::lxor)
      .value("band", ReduceOp::band)
      .value("bor", ReduceOp::bor)
      .value("bxor", ReduceOp::bxor);
  nb::class_<Operator>(m, "Operator", docs::kOperator).def("__repr__", &Operator::text);
  nb::class_<PreMulSum, Operator>(m, "PreMulSum", docs::kPreMulSum);
  m.def("reduce_local", reduce_local, "a"_a, "inout"_a, "op"_a = "sum", docs::kReduceLocal,
        nb::sig("def reduce_local(a: object, inout: object, " ANYCCL_OP ") -> typing.Any"));
}

}  // namespace anyccl::python
