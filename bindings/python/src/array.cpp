#include "array.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "interpreter.hpp"
#include "strided_copy.hpp"

namespace anyccl::python {
namespace {

/// An array as its library exports it, before any copy.
struct Found {
  Array array;
  Shape strides;  // in bytes
  bool writable = false;
};

struct BufferHold : Hold {
  ~BufferHold() override { PyBuffer_Release(&buffer); }
  Py_buffer buffer{};
};

template <typename Managed>
struct TensorHold : Hold {
  explicit TensorHold(Managed* m) : managed(m) {}
  ~TensorHold() override {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
  Managed* managed;
};

struct CopyHold : Hold {
  explicit CopyHold(std::size_t bytes) : memory(new std::byte[bytes]) {}
  std::unique_ptr<std::byte[]> memory;
};

std::string name_of_type(nb::handle x) {
  return nb::cast<std::string>(nb::handle(x.type()).attr("__name__"));
}

[[noreturn]] void raise_dtype(const char* name, const std::string& what) {
  raise(anycclUnsupported, std::string(name) + ": anyccl has no element type for " + what);
}

Shape strides_in_c_order(const Shape& shape, std::int64_t item_bytes) {
  Shape strides(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; item_bytes *= shape[i]) strides[i] = item_bytes;
  return strides;
}

bool is_in_c_order(const Found& found) {
  if (found.array.count() == 0) return true;
  std::int64_t expected = static_cast<std::int64_t>(info(found.array.dtype).bytes);
  for (std::size_t i = found.array.shape.size(); i-- > 0;) {
    if (found.array.shape[i] != 1 && found.strides[i] != expected) return false;
    expected *= found.array.shape[i];
  }
  return true;
}

/// Its memory waits for copy_again().
Array unfilled_copy_of(const Found& found) {
  Array copy = found.array;
  auto hold = std::make_shared<CopyHold>(copy.bytes());
  copy.origin = std::make_shared<Origin>(Origin{copy.data, found.strides, std::move(copy.hold)});
  copy.data = hold->memory.get();
  copy.hold = std::move(hold);
  return copy;
}

/// `dtype` is the type of the elements, whatever the buffer's format says; null: the format tells
/// it.
Found from_buffer(nb::handle x, const char* name, const DType* dtype = nullptr) {
  auto hold = std::make_shared<BufferHold>();
  if (PyObject_GetBuffer(x.ptr(), &hold->buffer, PyBUF_RECORDS_RO) != 0) throw nb::python_error();
  const Py_buffer& b = hold->buffer;
  Found found;
  found.array.data = static_cast<std::byte*>(b.buf);
  found.array.shape.assign(b.shape, b.shape + b.ndim);
  if (b.strides != nullptr)
    found.strides.assign(b.strides, b.strides + b.ndim);
  else  // as ctypes exports: in C order
    found.strides = strides_in_c_order(found.array.shape, b.itemsize);
  found.writable = b.readonly == 0;
  const char* format = b.format == nullptr ? "B" : b.format;
  const std::optional<DType> known =
      dtype != nullptr ? *dtype : dtype_of_format(format, static_cast<std::size_t>(b.itemsize));
  if (!known) raise_dtype(name, "the buffer format '" + std::string(format) + "'");
  found.array.dtype = *known;
  found.array.hold = std::move(hold);
  return found;
}

/// Returns numpy.ndarray, and imports NumPy for that at the first call.
PyTypeObject* ndarray_type() {
  // Not initialized where it is declared: C++ would hold a lock of its own for that, while the
  // import may let another thread have the interpreter's, and that thread come here.
  static PyObject* ndarray = nullptr;
  if (ndarray == nullptr)
    ndarray = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
  return reinterpret_cast<PyTypeObject*>(ndarray);
}

/// Raises Unsupported for a masked array, and for a type that the library does not have.
Found from_numpy(nb::handle x, const char* name) {
  if (Py_TYPE(x.ptr()) != ndarray_type() && nb::hasattr(x, "_mask"))
    raise(anycclUnsupported,
          std::string(name) + " is a masked array: fill it first, as in " + name + ".filled(0)");
  try {
    return from_buffer(x, name);
  } catch (const nb::python_error& e) {
    if (!e.matches(PyExc_ValueError)) throw;  // NumPy exports only its own types as buffers
  }
  const nb::object dtype = x.attr("dtype");
  const std::optional<DType> known = dtype_named(nb::cast<std::string>(dtype.attr("name")));
  if (!known) raise_dtype(name, "NumPy's " + std::string(nb::repr(dtype).c_str()));
  return from_buffer(x.attr("view")(info(*known).bytes == 2 ? "u2" : "u1"), name, &*known);
}

std::string device_name(std::int32_t type, std::int32_t id) {
  constexpr std::array<std::pair<std::int32_t, std::string_view>, 9> kNames = {
      {{2, "cuda"},
       {4, "opencl"},
       {7, "vulkan"},
       {8, "metal"},
       {9, "vpi"},
       {10, "rocm"},
       {13, "cuda managed memory"},
       {14, "oneapi"},
       {15, "webgpu"}}};
  for (const auto& [known, text] : kNames)
    if (known == type) return std::string(text) + ":" + std::to_string(id);
  return "DLPack device " + std::to_string(type) + ":" + std::to_string(id);
}

/// Raises Unsupported for the element type alone, not for a device, and leaves `writable` false.
Found from_tensor(const dlpack::Tensor& t, std::shared_ptr<Hold> hold, const char* name) {
  const std::optional<DType> dtype = dtype_of(t.dtype);
  if (!dtype)
    raise_dtype(name, "DLPack type code " + std::to_string(t.dtype.code) + " with " +
                          std::to_string(t.dtype.bits) + " bits and " +
                          std::to_string(t.dtype.lanes) + " lanes");
  Found found;
  found.array.dtype = *dtype;
  found.array.data = static_cast<std::byte*>(t.data) + t.byte_offset;
  found.array.shape.assign(t.shape, t.shape + t.ndim);
  const auto item = static_cast<std::int64_t>(info(*dtype).bytes);
  found.strides = strides_in_c_order(found.array.shape, item);
  for (std::int32_t i = 0; t.strides != nullptr && i < t.ndim; ++i)
    found.strides[static_cast<std::size_t>(i)] = t.strides[i] * item;
  found.array.hold = std::move(hold);
  return found;
}

/// Takes over the contents of the capsule.
template <typename Managed>
std::pair<Managed*, std::shared_ptr<Hold>> take_over_capsule(nb::handle capsule, const char* kind,
                                                             const char* used) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), kind));
  if (managed == nullptr) throw nb::python_error();
  auto hold = std::make_shared<TensorHold<Managed>>(managed);
  PyCapsule_SetName(capsule.ptr(), used);
  return {managed, std::move(hold)};
}

nb::object dlpack_capsule_of(nb::handle x) {
  const nb::object dlpack = x.attr("__dlpack__");
  try {
    return dlpack(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (const nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;  // from before DLPack 1.0
  }
  return dlpack();
}

/// Takes host memory, also pinned, and raises Unsupported for other memory. Arrays of JAX, and
/// those that are exported as read-only, are not writable.
Found from_dlpack(nb::handle x, const char* name) {
  if (nb::hasattr(x, "is_neg") &&
      nb::cast<bool>(x.attr("is_neg")()))  // of torch, whose export forgets it
    raise(anycclUnsupported, std::string(name) + " is the negative of what its memory has: pass " +
                                 name + ".resolve_neg()");
  const auto device =
      nb::cast<std::pair<std::int32_t, std::int32_t>>(x.attr("__dlpack_device__")());
  if (device.first != dlpack::kCpu && device.first != dlpack::kCudaHost &&
      device.first != dlpack::kRocmHost)
    raise(anycclUnsupported, std::string(name) + " is on " +
                                 device_name(device.first, device.second) +
                                 "; this version of anyccl takes arrays in host memory");
  const auto module = nb::cast<std::string>(nb::handle(x.type()).attr("__module__"));
  const bool is_jax = module.starts_with("jax");  // whose arrays are read-only
  const nb::object capsule = dlpack_capsule_of(x);
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto [managed, hold] = take_over_capsule<dlpack::ManagedVersioned>(
        capsule, "dltensor_versioned", "used_dltensor_versioned");
    if (managed->major != 1)
      raise(anycclUnsupported, std::string(name) + " exports DLPack " +
                                   std::to_string(managed->major) + "; anyccl reads DLPack 1");
    Found found = from_tensor(managed->tensor, std::move(hold), name);
    found.writable = !is_jax && (managed->flags & dlpack::kReadOnly) == 0;
    return found;
  }
  auto [managed, hold] = take_over_capsule<dlpack::Managed>(capsule, "dltensor", "used_dltensor");
  Found found = from_tensor(managed->tensor, std::move(hold), name);
  found.writable = !is_jax;  // an older export cannot say that it is read-only
  return found;
}

Found find_array(nb::handle x, const char* name) {
  Found found;
  if (is_numpy(x))
    found = from_numpy(x, name);
  else if (nb::hasattr(x, "__dlpack__") && nb::hasattr(x, "__dlpack_device__"))
    found = from_dlpack(x, name);
  else if (PyObject_CheckBuffer(x.ptr()))
    found = from_buffer(x, name);
  else
    raise_invalid(std::string(name) + " is of type " + name_of_type(x) +
                  ", which is not an array: it has neither DLPack nor the buffer protocol");
  found.array.source = nb::borrow(x);
  return found;
}

}  // namespace

std::size_t count_of(const Shape& shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

Shape with_first(std::int64_t first, const Shape& shape, std::size_t skip) {
  Shape made = {first};
  made.insert(made.end(), shape.begin() + static_cast<std::ptrdiff_t>(skip), shape.end());
  return made;
}

bool is_numpy(nb::handle x) {
  return PyObject_TypeCheck(x.ptr(), ndarray_type()) != 0;
}

void Array::copy_again() const {
  constexpr std::size_t kLong = std::size_t{64} << 10;  // bytes, from which on others may run
  std::optional<Unlocked> released;
  if (bytes() >= kLong) released.emplace();
  bindings::copy_strided(origin->first, shape, origin->strides, info(dtype).bytes, data);
}

bool Array::shares_bytes_with(const Array& written) const {
  if (count() == 0) return false;
  const auto address = [](const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); };
  std::uintptr_t low = address(origin == nullptr ? data : origin->first);
  std::uintptr_t high = low + (origin == nullptr ? bytes() : info(dtype).bytes);
  for (std::size_t d = 0; origin != nullptr && d < shape.size(); ++d) {
    const std::int64_t reach = (shape[d] - 1) * origin->strides[d];
    (reach < 0 ? low : high) += static_cast<std::uintptr_t>(reach);
  }
  return low < address(written.data) + written.bytes() && address(written.data) < high;
}

Array Array::input(nb::handle x, const char* name) {
  Found found = find_array(x, name);
  return is_in_c_order(found) ? std::move(found.array) : unfilled_copy_of(found);
}

Array Array::read(nb::handle x, const char* name) {
  Array array = input(x, name);
  if (array.origin != nullptr) array.copy_again();
  return array;
}

Array Array::output(nb::handle x, const char* name) {
  Found found = find_array(x, name);
  if (!found.writable) raise_invalid(std::string(name) + " is read-only");
  if (!is_in_c_order(found))
    raise_invalid(std::string(name) + " of shape " + to_string(found.array.shape) +
                  " is not contiguous in C order, so results cannot be written into it");
  return std::move(found.array);
}

Array Array::like(nb::handle x, const char* name) {
  return find_array(x, name).array;
}

}  // namespace anyccl::python
