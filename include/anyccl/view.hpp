#pragma once
// Elements in memory, as the C++ interface takes them (anyccl.hpp includes this).

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "anyccl/types.hpp"

namespace anyccl {

/// Numbers of types that C++20 does not have, as their bits.
struct BFloat16 {
  std::uint16_t bits = 0;
};
struct Float16 {
  std::uint16_t bits = 0;
};
struct Float8E4M3 {
  std::uint8_t bits = 0;
};
struct Float8E5M2 {
  std::uint8_t bits = 0;
};

/// A value with its place, as the operators of Communicator::create_max_loc() take them: of float
/// and std::int32_t with an index of 32 bits, of double and std::int64_t with one of 64.
template <typename T>
struct ValueIndex {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, std::int32_t> ||
                std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>);
  T value{};
  std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t> index{};
  bool operator==(const ValueIndex&) const = default;
};

/// The DType of a C++ type; programs with other types do not link, and compilers warn of them.
template <typename T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<BFloat16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<std::int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<std::uint64_t>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<std::int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<std::uint16_t>() {
  return DType::u16;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}
template <>
constexpr DType dtype_of<Float16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<Float8E4M3>() {
  return DType::f8e4m3;
}
template <>
constexpr DType dtype_of<Float8E5M2>() {
  return DType::f8e5m2;
}
template <>
constexpr DType dtype_of<ValueIndex<float>>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<ValueIndex<std::int32_t>>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<ValueIndex<double>>() {
  return DType::complex128;
}
template <>
constexpr DType dtype_of<ValueIndex<std::int64_t>>() {
  return DType::complex128;
}
template <>
constexpr DType dtype_of<std::complex<float>>() {
  return DType::complex64;
}
template <>
constexpr DType dtype_of<std::complex<double>>() {
  return DType::complex128;
}

/// The caller's elements: `count` of `dtype` at `data`. Vectors (not of bool) and spans (without a
/// fixed size) become one: `comm.all_reduce(x, y, ReduceOp::sum)`. What is only read may be const.
struct View {
  View() = default;
  View(void* first, std::size_t elements, DType type) : data(first), count(elements), dtype(type) {}
  template <typename T>
  View(std::span<T> elements)
      : View(const_cast<std::remove_const_t<T>*>(elements.data()), elements.size(),
             dtype_of<std::remove_const_t<T>>()) {}
  template <typename T, typename A>
  View(std::vector<T, A>& elements) : View(std::span<T>(elements)) {}
  template <typename T, typename A>
  View(const std::vector<T, A>& elements) : View(std::span<const T>(elements)) {}

  void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;
};

namespace detail {
/// Gives "3 f32", as messages have it.
inline std::string described(const View& view) {
  return std::to_string(view.count) + " " + std::string(name_of(view.dtype));
}
}  // namespace detail

/// These make a View by name.
template <typename T>
View view(std::span<T> elements) {
  return elements;
}
template <typename T, typename A>
View view(std::vector<T, A>& elements) {
  return elements;
}
template <typename T, typename A>
View view(const std::vector<T, A>& elements) {
  return elements;
}

}  // namespace anyccl
