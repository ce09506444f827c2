#include "operators.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

namespace anyccl::python {
namespace {

// By ReduceOp.
constexpr std::array<std::string_view, anycclNumOps> kOpNames = {
    "sum", "prod", "max", "min", "avg", "land", "lor", "lxor", "band", "bor", "bxor"};

// Where functions that this thread calls through reduce_local() leave what they raise.
thread_local nb::object* raised_here = nullptr;

anycclRedOp_t op_named(const std::string& name) {
  const auto* found = std::find(kOpNames.begin(), kOpNames.end(), name);
  if (found != kOpNames.end()) return static_cast<anycclRedOp_t>(found - kOpNames.begin());
  std::string known;
  for (const std::string_view one : kOpNames)
    known += (known.empty() ? "" : ", ") + std::string(one);
  raise_invalid("op is '" + name + "'; it is one of " + known);
}

struct RaisedHere {
  explicit RaisedHere(nb::object& to) : outer(std::exchange(raised_here, &to)) {}
  RaisedHere(const RaisedHere&) = delete;
  RaisedHere& operator=(const RaisedHere&) = delete;
  ~RaisedHere() { raised_here = outer; }
  nb::object* outer;
};

/// `raised` gets what the function of an operator raises.
Outcome run_local(const Op& op, const Array& from, const Array& to, nb::object& raised) {
  const auto run = [&](anycclRedOp_t code, anycclComm_t comm) {
    const RaisedHere here(raised);
    return unlocked([&] {
      return anycclReduceLocal(from.data, to.data, from.count(),
                               static_cast<anycclDataType_t>(from.dtype), code, comm);
    });
  };
  if (const auto* name = std::get_if<std::string>(&op)) return run(op_named(*name), nullptr);
  if (const auto* known = std::get_if<ReduceOp>(&op))
    return run(static_cast<anycclRedOp_t>(*known), nullptr);
  const Operator* const own = std::get<Operator*>(op);
  if (own == nullptr) raise_invalid("op is None");
  const CommunicatorPtr comm = own->comm();
  if (comm == nullptr) raise(anycclInvalidUsage, "the communicator of op is gone");
  const Communicator::Call turn(*comm);
  return run(own->code(), turn.handle);
}

/// A new array of NumPy with `count` elements, and their memory.
std::pair<nb::object, std::byte*> new_array(std::size_t count, DType dtype) {
  nb::object made = nb::module_::import_("numpy").attr("empty")(count, numpy_dtype(dtype));
  return {made, Array::output(made, "an operand").data};
}

}  // namespace

anycclRedOp_t code_of(const Op& op, const Communicator& c, OperatorPtr& owner) {
  if (const auto* name = std::get_if<std::string>(&op)) return op_named(*name);
  if (const auto* known = std::get_if<ReduceOp>(&op)) return static_cast<anycclRedOp_t>(*known);
  Operator* const own = std::get<Operator*>(op);
  if (own == nullptr) raise_invalid("op is None");
  if (!own->is_of(c)) raise_invalid("op belongs to another communicator");
  owner = own->shared_from_this();
  return own->code();
}

Operator::~Operator() {
  if (const CommunicatorPtr comm = comm_.lock(); made_ && comm != nullptr) comm->retire(code_);
}

OperatorPtr Operator::create_product_sum(Communicator& c, nb::handle factor, nb::handle type) {
  const DType dtype = dtype_from(type);
  const nb::object bits =
      nb::module_::import_("numpy").attr("asarray")(factor).attr("astype")(numpy_dtype(dtype));
  const auto bytes = nb::cast<nb::bytes>(bits.attr("tobytes")());
  if (bytes.size() != info(dtype).bytes) raise_invalid("factor is not one number");
  auto made = std::make_shared<PreMulSum>(c.shared_from_this());
  made->dtype_ = dtype;
  made->code_ = c.create_operator([&](anycclRedOp_t* op, anycclComm_t comm) {
    return anycclRedOpCreatePreMulSum(op, const_cast<char*>(bytes.c_str()),
                                      static_cast<anycclDataType_t>(dtype),
                                      anycclScalarHostImmediate, comm);
  });
  made->made_ = true;
  return made;
}

OperatorPtr Operator::create_of_function(Communicator& c, nb::callable function) {
  auto made = std::make_shared<Operator>(c.shared_from_this(), Kind::function);
  made->function_ = std::move(function);
  made->code_ = c.create_operator([&](anycclRedOp_t* op, anycclComm_t comm) {
    return anycclRedOpCreate(op, &Operator::call, made.get(), comm);
  });
  made->made_ = true;
  return made;
}

OperatorPtr Operator::create_locator(Communicator& c, Kind which, nb::handle value) {
  auto made = std::make_shared<Operator>(c.shared_from_this(), which);
  made->dtype_ = dtype_from(value);
  made->code_ = c.create_operator([&](anycclRedOp_t* op, anycclComm_t comm) {
    return anycclRedOpCreateLoc(op, which == Kind::max_loc ? anycclMax : anycclMin,
                                static_cast<anycclDataType_t>(made->dtype_), comm);
  });
  made->made_ = true;
  return made;
}

std::string Operator::text() const {
  const std::string of = " of " + std::string(info(dtype_).name) + ">";
  switch (kind_) {
    case Kind::product_sum:
      return "<anyccl.PreMulSum" + of;
    case Kind::max_loc:
      return "<anyccl.Operator, max_loc" + of;
    case Kind::min_loc:
      return "<anyccl.Operator, min_loc" + of;
    case Kind::function:
      break;
  }
  return "<anyccl.Operator, " + std::string(nb::repr(function_).c_str()) + ">";
}

/// In whichever thread makes progress.
void Operator::call(const void* in, void* inout, std::size_t count, anycclDataType_t datatype,
                    void* self) {
  auto body = [&] {
    const auto* const op = static_cast<const Operator*>(self);
    try {
      op->combine(in, inout, count, static_cast<DType>(datatype));
    } catch (const nb::python_error& e) {
      op->fail(nb::borrow(e.value()));
    } catch (const std::exception& e) {
      op->fail(exception_of({anycclInternalError, e.what()}));
    }
  };
  with_interpreter(body);
}

/// The function gets arrays of its own, as it might keep them, and these are the library's.
void Operator::combine(const void* in, void* inout, std::size_t count, DType dtype) const {
  const auto [a, a_bytes] = new_array(count, dtype);
  const auto [b, b_bytes] = new_array(count, dtype);
  const std::size_t bytes = count * info(dtype).bytes;
  std::memcpy(a_bytes, in, bytes);
  std::memcpy(b_bytes, inout, bytes);
  function_(a, b);
  std::memcpy(inout, b_bytes, bytes);
}

/// Gives the exception to the reduce_local() that this thread is in, else to the communicator.
void Operator::fail(nb::object exception) const {
  if (raised_here != nullptr) {
    *raised_here = std::move(exception);
  } else if (const CommunicatorPtr comm = comm_.lock()) {
    comm->note_operator_failure(std::move(exception));
  }
}

nb::object reduce_local(nb::handle a, nb::handle inout, const Op& op) {
  const Array from = Array::read(a, "a");
  const Array to = Array::output(inout, "inout");
  if (from.dtype != to.dtype || from.count() != to.count())
    raise_invalid("a has " + std::to_string(from.count()) + " elements of " +
                  std::string(info(from.dtype).name) + ", but inout " + std::to_string(to.count()) +
                  " of " + std::string(info(to.dtype).name));
  nb::object raised;
  const Outcome outcome = run_local(op, from, to, raised);
  if (raised.is_valid()) raise_object(raised);
  raise_unless_ok(outcome);
  return nb::borrow(inout);
}

}  // namespace anyccl::python
