#pragma once
// Numbers of JSON that others have written.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace anyccl::cli {

/// A whole number that T can hold. Throws the library's type_error: conversions by the library
/// itself cut off what does not fit.
template <typename T, typename Json>
T whole_number(const Json& number) {
  const bool fits =
      number.is_number_unsigned()  ? std::in_range<T>(number.template get<std::uint64_t>())
      : number.is_number_integer() ? std::in_range<T>(number.template get<std::int64_t>())
                                   : false;
  if (!fits)
    throw Json::type_error::create(302, "a whole number is needed, and no larger one", &number);
  return number.template get<T>();
}

}  // namespace anyccl::cli
