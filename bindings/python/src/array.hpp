#pragma once
// Arrays of any library in host memory, as the collectives see them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dtype.hpp"

namespace anyccl::python {

using Shape = std::vector<std::int64_t>;
std::size_t count_of(const Shape& shape);
std::string to_string(const Shape& shape);
/// (first, *rest), where `rest` is `shape` without its first `skip` dimensions.
Shape with_first(std::int64_t first, const Shape& shape, std::size_t skip = 0);

/// Keeps the memory of an array alive. Destroyed with the interpreter lock held.
class Hold {
 public:
  Hold() = default;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  virtual ~Hold() = default;
};

/// Memory in another order than C's, of which an array is a copy.
struct Origin {
  const std::byte* first;
  Shape strides;  // in bytes
  std::shared_ptr<Hold> hold;
};

/// The elements of the user's array, in C order, and the owner that keeps them alive.
struct Array {
  /// An array that a call reads. One in another order has a copy, which gets its elements when
  /// IssuedOperations::copy_inputs() says so. `name` is that of the argument.
  ///
  /// Errors (raised): InvalidArgument, Unsupported for an element type or a device that the library
  ///                  does not have.
  static Array input(nb::handle x, const char* name);
  /// An array to read at once; the same.
  static Array read(nb::handle x, const char* name);
  /// An array to write; the same, and InvalidArgument if it is read-only or not in C order.
  static Array output(nb::handle x, const char* name);
  /// Shape and type only, of an array that is neither read nor written.
  static Array like(nb::handle x, const char* name);
  /// No elements.
  static Array none() {
    Array empty;
    empty.shape = {0};
    return empty;
  }

  std::size_t count() const { return count_of(shape); }
  std::size_t bytes() const { return count() * info(dtype).bytes; }
  /// Copies `origin`. With the interpreter lock, which a long copy releases meanwhile.
  void copy_again() const;
  /// Whether it, or `origin` of a copy, may have bytes of an array that is written.
  bool shares_bytes_with(const Array& written) const;

  std::byte* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  nb::object source;                     // the user's argument
  std::shared_ptr<Hold> hold;            // the memory behind `data`
  std::shared_ptr<const Origin> origin;  // null: `data` is the user's
};

bool is_numpy(nb::handle x);

}  // namespace anyccl::python
