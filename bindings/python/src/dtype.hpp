#pragma once
// Element types by the names that array libraries give them.

#include <optional>
#include <string_view>

#include "anyccl/types.hpp"
#include "dlpack.hpp"
#include "error.hpp"

namespace anyccl::python {

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // NumPy's; of ml_dtypes where NumPy has none
  std::size_t bytes;
  std::uint8_t code;  // dlpack::TypeCode
};
const DTypeInfo& info(DType dtype);

std::optional<DType> dtype_named(std::string_view name);
std::optional<DType> dtype_of(const dlpack::Type& type);
/// The type that the format of a buffer (module struct) means, or of a character of
/// numpy.dtype.char.
std::optional<DType> dtype_of_format(std::string_view format, std::size_t item_bytes);
/// From the user's form: a name, numpy.dtype, numpy.float32, torch.float32. Raises InvalidArgument.
DType dtype_from(nb::handle what);
/// The numpy.dtype. Raises Unsupported for a type that NumPy has only with ml_dtypes, without it.
nb::object numpy_dtype(DType dtype);

}  // namespace anyccl::python
