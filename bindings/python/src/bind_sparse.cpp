// To Python: sparse vectors, for anyccl/sparse.py.

#include "array.hpp"
#include "bind.hpp"

namespace anyccl::python {
namespace {

using Cut = anycclSparseCut_t;

float* floats(const Array& x, const char* name) {
  if (x.dtype != DType::f32)
    raise_invalid(std::string(name) + " is of " + std::string(info(x.dtype).name) +
                  ": sparse vectors are of float32");
  return reinterpret_cast<float*>(x.data);
}

void need_bytes(const Array& x) {
  if (x.dtype != DType::u8) raise_invalid("a payload is an array of uint8");
}

/// The count of all of them, if it is the same.
std::size_t common_count(const Array& a, const Array& b, const char* names) {
  if (a.count() == b.count()) return a.count();
  raise_invalid(std::string(names) + " have " + std::to_string(a.count()) + " and " +
                std::to_string(b.count()) + " elements");
}

using Select = anycclResult_t (*)(const float*, std::size_t, std::size_t, Cut*);
template <Select kSelect>
Cut select(nb::handle x, std::size_t wanted) {
  const Array from = Array::read(x, "x");
  const float* const data = floats(from, "x");
  Cut cut{};
  raise_unless_ok(unlocked([&] { return kSelect(data, from.count(), wanted, &cut); }));
  return cut;
}

std::size_t elements_in(nb::handle x) {
  return Array::like(x, "x").count();
}

std::size_t payload_bound(std::size_t count, std::size_t entries, nb::handle values) {
  std::size_t bytes = 0;
  const auto type = static_cast<anycclDataType_t>(dtype_from(values));
  raise_unless_ok(outcome_of(anycclSparseBound(count, entries, type, &bytes)));
  return bytes;
}

/// Moves the elements that `cut` takes into `payload`, and returns its bytes. `residual` keeps what
/// rounding to `values` takes of them; in `momentum`, which may be None, they become 0.
std::size_t pack(nb::handle residual, nb::handle momentum, const Cut& cut, nb::handle values,
                 nb::handle payload) {
  const Array v = Array::output(residual, "residual"), to = Array::output(payload, "out");
  const Array u = momentum.is_none() ? Array::none() : Array::output(momentum, "momentum");
  float* const data = floats(v, "residual");
  float* const velocity = momentum.is_none() ? nullptr : floats(u, "momentum");
  if (velocity != nullptr) common_count(v, u, "residual and momentum");
  need_bytes(to);
  const auto type = static_cast<anycclDataType_t>(dtype_from(values));
  std::size_t bytes = 0;
  raise_unless_ok(unlocked([&] {
    return anycclSparsePack(data, velocity, v.count(), &cut, type, to.data, to.count(), &bytes);
  }));
  return bytes;
}

void add(nb::handle payload, nb::handle into) {
  const Array from = Array::read(payload, "payload"), to = Array::output(into, "into");
  float* const data = floats(to, "into");
  need_bytes(from);
  raise_unless_ok(
      unlocked([&] { return anycclSparseAdd(from.data, from.count(), data, to.count()); }));
}

void momentum(nb::handle velocity, nb::handle residual, nb::handle gradient, float factor) {
  const Array u = Array::output(velocity, "momentum"), v = Array::output(residual, "residual");
  const Array g = Array::read(gradient, "gradient");
  float *const to = floats(u, "momentum"), *const sum = floats(v, "residual");
  const float* const from = floats(g, "gradient");
  common_count(u, g, "momentum and gradient");
  const std::size_t count = common_count(v, g, "residual and gradient");
  raise_unless_ok(unlocked([&] { return anycclSparseMomentum(to, sum, from, count, factor); }));
}

}  // namespace

void bind_sparse(nb::module_& m) {
  nb::class_<Cut>(m, "_SparseCut", "Which elements of a vector are taken.")
      .def_ro("least", &Cut::least)
      .def_ro("ties", &Cut::ties)
      .def_ro("entries", &Cut::entries);
  m.def("_count_of", elements_in, "x"_a);
  m.def("_sparse_threshold", select<anycclSparseThreshold>, "x"_a, "keep"_a);
  m.def("_sparse_top_k", select<anycclSparseTopK>, "x"_a, "k"_a);
  m.def("_sparse_bound", payload_bound, "count"_a, "entries"_a, "values"_a);
  m.def("_sparse_pack", pack, "residual"_a, "momentum"_a.none(), "cut"_a, "values"_a, "payload"_a);
  m.def("_sparse_add", add, "payload"_a, "into"_a);
  m.def("_sparse_momentum", momentum, "momentum"_a, "residual"_a, "gradient"_a, "factor"_a);
}

}  // namespace anyccl::python
