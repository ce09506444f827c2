#pragma once
// The output of a collective: the caller's array, or a new one of the kind of the input.

#include "array.hpp"

namespace anyccl::python {

/// New memory that other libraries take over by DLPack.
class Memory {
 public:
  Memory(DType dtype, Shape shape);
  std::byte* data() const { return block_.get(); }
  /// The capsule that __dlpack__ returns; versioned if the caller knows DLPack 1.
  nb::object exported(bool versioned) const;

 private:
  DType dtype_;
  Shape shape_;
  std::shared_ptr<std::byte> block_;
};
void bind_memory(nb::module_& m);

class Result {
 public:
  /// `out`, which must have `shape` (or as many elements in one dimension) and the type of `like`;
  /// or, if it is None, a new array of the kind of `like`. `zeroed`: parts of it stay
  /// unwritten.
  static Result make(nb::handle out, const Array& like, const Shape& shape, bool zeroed = false);
  /// As make(), but `out` may have any type.
  static Result of_sum(nb::handle out, const Array& like, const Shape& shape);
  /// The caller's array, whatever its shape.
  explicit Result(Array out) : array_(std::move(out)), object_(array_.source) {}
  /// What the user gets, whatever it is; it is not written.
  static Result of(nb::object object) {
    Result result;
    result.object_ = std::move(object);
    return result;
  }
  /// Nothing, for ranks without a result.
  Result() : object_(nb::none()) {}

  const Array& array() const { return array_; }
  /// For the caller, once the operation is complete.
  nb::object take();
  /// Gives the caller, before the operation is complete, an array that will have the result. Raises
  /// InvalidUsage for libraries whose arrays nobody may write.
  nb::object take_early();

 private:
  Array array_;
  nb::object object_;
  nb::object from_dlpack_;  // of the library whose array `object_`, a Memory, is to become
};

}  // namespace anyccl::python
