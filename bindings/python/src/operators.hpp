#pragma once
// How elements are combined.

#include <memory>
#include <string>
#include <variant>

#include "anyccl/types.hpp"
#include "communicator.hpp"

namespace anyccl::python {

/// An operator of one communicator. Whatever uses it keeps it alive.
class Operator : public std::enable_shared_from_this<Operator> {
 public:
  enum class Kind { product_sum, function, max_loc, min_loc };

  Operator(const CommunicatorPtr& comm, Kind kind) : kind_(kind), comm_(comm) {}
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  virtual ~Operator();

  /// Each rank's input times its factor is summed.
  static OperatorPtr create_product_sum(Communicator& c, nb::handle factor, nb::handle dtype);
  /// `function`(a, inout) is called with arrays of NumPy.
  static OperatorPtr create_of_function(Communicator& c, nb::callable function);
  /// `value`: the type of the values.
  static OperatorPtr create_locator(Communicator& c, Kind which, nb::handle value);

  std::string text() const;
  bool is_of(const Communicator& c) const { return comm_.lock().get() == &c; }
  CommunicatorPtr comm() const { return comm_.lock(); }
  anycclRedOp_t code() const { return code_; }

 private:
  static void call(const void* in, void* inout, std::size_t count, anycclDataType_t datatype,
                   void* self);
  void combine(const void* in, void* inout, std::size_t count, DType dtype) const;
  void fail(nb::object exception) const;

  Kind kind_;
  std::weak_ptr<Communicator> comm_;  // weak: its operations may have this
  DType dtype_ = DType::f32;          // of values; not of functions
  nb::object function_;
  anycclRedOp_t code_{};
  bool made_ = false;
};

/// For nanobind: a sum with a factor per rank has a class of its own.
struct PreMulSum : Operator {
  explicit PreMulSum(const CommunicatorPtr& comm) : Operator(comm, Kind::product_sum) {}
};

using Op = std::variant<ReduceOp, std::string, Operator*>;
/// Its code, and the operator for `owner` if it is one of the communicator `c`. Raises
/// InvalidArgument.
anycclRedOp_t code_of(const Op& op, const Communicator& c, OperatorPtr& owner);

/// inout = a op inout, here alone.
nb::object reduce_local(nb::handle a, nb::handle inout, const Op& op);

}  // namespace anyccl::python
