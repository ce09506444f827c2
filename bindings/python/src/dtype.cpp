#include "dtype.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace anyccl::python {
namespace {

// By DType.
constexpr std::array<DTypeInfo, anycclNumTypes> kDTypes = {{
    {DType::i8, "int8", 1, dlpack::kInt},
    {DType::u8, "uint8", 1, dlpack::kUInt},
    {DType::i32, "int32", 4, dlpack::kInt},
    {DType::u32, "uint32", 4, dlpack::kUInt},
    {DType::i64, "int64", 8, dlpack::kInt},
    {DType::u64, "uint64", 8, dlpack::kUInt},
    {DType::f16, "float16", 2, dlpack::kFloat},
    {DType::f32, "float32", 4, dlpack::kFloat},
    {DType::f64, "float64", 8, dlpack::kFloat},
    {DType::bf16, "bfloat16", 2, dlpack::kBfloat},
    {DType::f8e4m3, "float8_e4m3fn", 1, dlpack::kFloat8E4M3FN},
    {DType::f8e5m2, "float8_e5m2", 1, dlpack::kFloat8E5M2},
    {DType::i16, "int16", 2, dlpack::kInt},
    {DType::u16, "uint16", 2, dlpack::kUInt},
    {DType::boolean, "bool", 1, dlpack::kBool},
    {DType::complex64, "complex64", 8, dlpack::kComplex},
    {DType::complex128, "complex128", 16, dlpack::kComplex},
}};

template <typename Matches>
std::optional<DType> find(const Matches& matches) {
  const auto* found = std::find_if(kDTypes.begin(), kDTypes.end(), matches);
  if (found == kDTypes.end()) return std::nullopt;
  return found->dtype;
}

std::optional<DType> dtype_with(std::uint8_t code, std::size_t bytes) {
  return find([&](const DTypeInfo& d) { return d.code == code && d.bytes == bytes; });
}

}  // namespace

const DTypeInfo& info(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)];
}

std::optional<DType> dtype_named(std::string_view name) {
  return find([&](const DTypeInfo& d) { return d.name == name; });
}

std::optional<DType> dtype_of(const dlpack::Type& type) {
  if (type.lanes != 1 || type.bits % 8 != 0) return std::nullopt;
  return dtype_with(type.code, type.bits / std::size_t{8});
}

std::optional<DType> dtype_of_format(std::string_view format, std::size_t item_bytes) {
  if (!format.empty() && std::string_view("@=<").find(format[0]) != std::string_view::npos)
    format.remove_prefix(1);  // this library is for little-endian machines only
  if (format == "Zf" || format == "Zd") return dtype_with(dlpack::kComplex, item_bytes);
  if (format.size() != 1) return std::nullopt;
  const auto is_one_of = [&](std::string_view set) { return set.find(format[0]) != set.npos; };
  if (is_one_of("?")) return DType::boolean;
  if (is_one_of("bhilqn")) return dtype_with(dlpack::kInt, item_bytes);
  if (is_one_of("BHILQNc")) return dtype_with(dlpack::kUInt, item_bytes);
  if (is_one_of("efd")) return dtype_with(dlpack::kFloat, item_bytes);
  return std::nullopt;
}

DType dtype_from(nb::handle what) {
  std::string name;
  if (nb::isinstance<nb::str>(what)) {
    name = nb::cast<std::string_view>(what);
  } else if (nb::isinstance<nb::type_object>(what)) {  // numpy.float32, float
    name =
        nb::cast<std::string_view>(nb::module_::import_("numpy").attr("dtype")(what).attr("name"));
  } else {
    name = nb::str(nb::getattr(what, "name", what)).c_str();  // numpy.dtype; "torch.float32"
  }
  const std::optional<DType> dtype = dtype_named(name.substr(name.rfind('.') + 1));
  if (!dtype) raise_invalid("'" + name + "' is not an element type of anyccl");
  return *dtype;
}

nb::object numpy_dtype(DType dtype) {
  const nb::object make = nb::module_::import_("numpy").attr("dtype");
  const char* name = info(dtype).name.data();  // of a literal, so it ends with a 0
  if (dtype != DType::bf16 && dtype != DType::f8e4m3 && dtype != DType::f8e5m2) return make(name);
  try {
    return make(nb::module_::import_("ml_dtypes").attr(name));
  } catch (const nb::python_error& e) {
    if (!e.matches(PyExc_ImportError)) throw;
  }
  raise(anycclUnsupported, std::string("NumPy has no ") + name + " without the package ml_dtypes");
}

}  // namespace anyccl::python
