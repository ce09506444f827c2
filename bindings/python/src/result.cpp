#include "result.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace anyccl::python {
namespace {

constexpr std::size_t kAlignment = 64;

/// The contents of an exported capsule: DLPack's struct, and the data that it points to.
template <typename Managed>
struct Export {
  Managed managed{};
  Shape shape;
  std::shared_ptr<std::byte> block;
};

template <typename Managed>
nb::object capsule_of(Export<Managed>* e, const char* name) {
  PyObject* capsule = PyCapsule_New(&e->managed, name, [](PyObject* self) {
    for (const char* unused : {"dltensor", "dltensor_versioned"})
      if (PyCapsule_IsValid(self, unused) != 0) {
        auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(self, unused));
        managed->deleter(managed);
      }
  });
  if (capsule == nullptr) {
    delete e;
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

template <typename Managed>
Export<Managed>* new_export(DType dtype, const Shape& shape, std::shared_ptr<std::byte> block) {
  auto* e = new Export<Managed>{{}, shape, std::move(block)};
  e->managed.context = e;
  e->managed.deleter = [](Managed* m) { delete static_cast<Export<Managed>*>(m->context); };
  dlpack::Tensor& t = e->managed.tensor;
  t.data = e->block.get();
  t.device = {dlpack::kCpu, 0};
  t.ndim = static_cast<std::int32_t>(shape.size());
  t.dtype = {info(dtype).code, static_cast<std::uint8_t>(info(dtype).bytes * 8), 1};
  t.shape = e->shape.data();
  return e;
}

/// The function that makes an array of the kind of `x` from DLPack; none if that is NumPy's.
nb::object from_dlpack_of(nb::handle x) {
  if (is_numpy(x) || !nb::hasattr(x, "__dlpack__")) return nb::none();
  if (nb::hasattr(x, "__array_namespace__"))
    return nb::getattr(x.attr("__array_namespace__")(), "from_dlpack", nb::none());
  const auto module = nb::cast<std::string>(nb::handle(x.type()).attr("__module__"));
  const nb::object loaded = nb::module_::import_("sys").attr("modules").attr("get")(
      module.substr(0, module.find('.')));  // torch
  return nb::getattr(loaded, "from_dlpack", nb::none());
}

nb::object new_numpy(const Array& like, const Shape& shape) {
  static PyObject* empty = nullptr;  // as in is_numpy()
  if (empty == nullptr)
    empty = nb::object(nb::module_::import_("numpy").attr("empty")).release().ptr();
  const nb::object dtype =
      is_numpy(like.source) ? nb::object(like.source.attr("dtype")) : numpy_dtype(like.dtype);
  nb::list extents;
  for (const std::int64_t extent : shape) extents.append(extent);
  return nb::borrow(empty)(nb::tuple(extents), dtype);
}

}  // namespace

Memory::Memory(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  const std::size_t bytes = count_of(shape_) * info(dtype).bytes;
  const std::size_t whole = (bytes / kAlignment + 1) * kAlignment;
  auto* first = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole));
  if (first == nullptr) throw std::bad_alloc();
  block_ = std::shared_ptr<std::byte>(first, [](std::byte* p) { std::free(p); });
}

nb::object Memory::exported(bool versioned) const {
  if (!versioned)
    return capsule_of(new_export<dlpack::Managed>(dtype_, shape_, block_), "dltensor");
  auto* e = new_export<dlpack::ManagedVersioned>(dtype_, shape_, block_);
  e->managed.major = 1;
  return capsule_of(e, "dltensor_versioned");
}

Result Result::of_sum(nb::handle out, const Array& like, const Shape& shape) {
  if (out.is_none()) return make(out, like, shape);
  Result given(Array::output(out, "out"));
  const Array& a = given.array_;
  const bool flat = a.shape.size() == 1 && a.count() == count_of(shape);
  if (a.shape != shape && !flat)
    raise_invalid("out has the shape " + to_string(a.shape) + ", but the result " +
                  to_string(shape));
  return given;
}

Result Result::make(nb::handle out, const Array& like, const Shape& shape, bool zeroed) {
  if (!out.is_none()) {
    Result given = of_sum(out, like, shape);
    if (const DType dtype = given.array_.dtype; dtype != like.dtype)
      raise_invalid("out is of " + std::string(info(dtype).name) + ", but the result of " +
                    std::string(info(like.dtype).name));
    return given;
  }
  Result made;
  made.from_dlpack_ = from_dlpack_of(like.source);
  if (made.from_dlpack_.is_none()) {
    made.object_ = new_numpy(like, shape);
    made.array_ = Array::output(made.object_, "the result");
  } else {
    auto* memory = new Memory(like.dtype, shape);
    made.object_ = nb::cast(memory, nb::rv_policy::take_ownership);
    made.array_.data = memory->data();
    made.array_.dtype = like.dtype;
    made.array_.shape = shape;
    made.array_.source = made.object_;
  }
  if (zeroed && made.array_.bytes() > 0) std::memset(made.array_.data, 0, made.array_.bytes());
  return made;
}

nb::object Result::take() {
  if (from_dlpack_.is_valid() && !from_dlpack_.is_none()) {
    object_ = from_dlpack_(object_);
    from_dlpack_ = nb::none();
  }
  return object_;
}

nb::object Result::take_early() {
  if (from_dlpack_.is_valid() && !from_dlpack_.is_none()) {
    const auto module = nb::cast<std::string>(nb::getattr(from_dlpack_, "__module__", nb::str("")));
    if (!module.starts_with("torch"))
      raise(anycclInvalidUsage,
            "in a stream or a group a result for arrays of x's library needs out= or async_op=True:"
            " a new array of that library cannot be filled later");
  }
  return take();
}

void bind_memory(nb::module_& m) {
  nb::class_<Memory>(m, "_Memory", "New memory on its way to an array library.")
      .def("__dlpack_device__", [](const Memory&) { return nb::make_tuple(1, 0); })
      .def("__dlpack__", [](const Memory& self, const nb::kwargs& wanted) {
        const nb::object version =
            wanted.contains("max_version") ? nb::object(wanted["max_version"]) : nb::none();
        return self.exported(!version.is_none() && nb::cast<int>(version[0]) >= 1);
      });
}

}  // namespace anyccl::python
