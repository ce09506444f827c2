// The C interface: operators.

#include <cstring>

#include "base/error.hpp"
#include "c/calls.hpp"
#include "platform/reduce/reduce.hpp"

namespace anyccl {
namespace {

template <typename Value, typename Index>
struct Located {
  Value value;
  Index index;
};

/// Whether `a` is the result of the two, or an equal one. A NaN comes before all numbers; of equal
/// values, the smaller index comes first.
template <bool kLargest, typename Pair>
bool comes_first(const Pair& a, const Pair& b) {
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan != b_is_nan) return a_is_nan;
  if (a_is_nan || a.value == b.value) return a.index <= b.index;
  return kLargest ? a.value > b.value : a.value < b.value;
}

template <typename Pair, bool kLargest>
void locate(const void* in, void* inout, std::size_t count, anycclDataType_t, void*) {
  const auto* from = static_cast<const std::byte*>(in);  // neither is aligned
  auto* to = static_cast<std::byte*>(inout);
  for (std::size_t i = 0; i < count; ++i, from += sizeof(Pair), to += sizeof(Pair)) {
    Pair theirs, mine;
    std::memcpy(&theirs, from, sizeof theirs);
    std::memcpy(&mine, to, sizeof mine);
    if (!comes_first<kLargest>(mine, theirs)) std::memcpy(to, &theirs, sizeof theirs);
  }
}

template <typename Value, typename Index>
anycclReduceFunction_t locator(bool largest) {
  using Pair = Located<Value, Index>;
  return largest ? locate<Pair, true> : locate<Pair, false>;
}

/// The function for values of this type; null: there is none.
anycclReduceFunction_t locator_of(anycclDataType_t value, bool largest) {
  switch (value) {
    case anycclFloat32:
      return locator<float, std::int32_t>(largest);
    case anycclInt32:
      return locator<std::int32_t, std::int32_t>(largest);
    case anycclFloat64:
      return locator<double, std::int64_t>(largest);
    case anycclInt64:
      return locator<std::int64_t, std::int64_t>(largest);
    default:
      return nullptr;
  }
}

/// Also refuses operators that are of the inputs of all ranks: averages and pre-multiplied sums.
Status check_local(const Call& call, const Operator* own) {
  if (bytes_of(call.dtype) == 0)
    return error(Code::invalid_argument, "datatype {} does not exist",
                 static_cast<int>(call.dtype));
  if (own == nullptr && !exists(call.op))
    return error(Code::invalid_argument,
                 "op does not exist, was destroyed, or is of another communicator");
  if (call.op == ReduceOp::avg || (own != nullptr && own->function == nullptr))
    return error(Code::unsupported,
                 "{} is not there for two vectors of one process: it is of the inputs of all ranks",
                 own == nullptr ? "avg" : "a pre-multiplied sum");
  const std::size_t bytes = call.count * bytes_of(call.dtype);
  if (bytes > 0 && (call.input == nullptr || call.output == nullptr))
    return error(Code::invalid_argument, "{} is NULL and count is {}",
                 call.input == nullptr ? "in" : "inout", call.count);
  if (overlap(call.input, bytes, call.output, bytes))
    return error(Code::invalid_argument, "in and inout overlap");
  return {};
}

/// Also checks the call, by check_local().
Status reduce_local(const Call& call, const Operator* own) {
  ANYCCL_CHECK(check_local(call, own));
  if (call.count == 0) return {};
  const void* sources[] = {call.input, call.output};
  if (own != nullptr) {
    own->function(call.input, call.output, call.count, static_cast<anycclDataType_t>(call.dtype),
                  own->data);
    return {};
  }
  ANYCCL_TRY(const ReduceFn kernel, reduce_kernel(call.dtype, call.op));
  kernel(call.output, nullptr, sources, 2, call.count);
  return {};
}

}  // namespace

/// Returns kNone if there is none, and if `comm` is null, ended or of the parent of this process.
ReduceOp number_of_created(anycclRedOp_t op, anycclComm_t comm) noexcept {
  if (comm == nullptr || !comm->open || comm->comm->forked()) return Operators::kNone;
  return comm->comm->operators().number_of(static_cast<ReduceOp>(op));
}

}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclRedOpCreatePreMulSum(anycclRedOp_t* op, void* scalar,
                                          anycclDataType_t datatype,
                                          anycclScalarResidence_t residence, anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(op, "op"));
    ANYCCL_CHECK(need(scalar, "scalar"));
    Operator product;
    product.dtype = static_cast<DType>(as_byte(datatype));
    if (bytes_of(product.dtype) == 0)
      return error(Code::invalid_argument, "datatype {} does not exist",
                   static_cast<int>(datatype));
    if (product.dtype == DType::boolean)
      return error(Code::unsupported, "a pre-multiplied sum of bool is not supported");
    if (residence == anycclScalarDevice)
      product.scalar = scalar;
    else if (residence == anycclScalarHostImmediate)
      std::memcpy(product.value.data(), scalar, bytes_of(product.dtype));
    else
      return error(Code::invalid_argument, "residence {} does not exist",
                   static_cast<int>(residence));
    ANYCCL_TRY(const ReduceOp made, comm->team->add_operator(product));
    *op = static_cast<anycclRedOp_t>(made);
    return {};
  });
}

anycclResult_t anycclRedOpCreate(anycclRedOp_t* op, anycclReduceFunction_t function, void* userdata,
                                 anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(op, "op"));
    if (function == nullptr) return error(Code::invalid_argument, "function is NULL");
    Operator made;
    made.function = function;
    made.data = userdata;
    ANYCCL_TRY(const ReduceOp name, comm->team->add_operator(made));
    *op = static_cast<anycclRedOp_t>(name);
    return {};
  });
}

anycclResult_t anycclRedOpCreateLoc(anycclRedOp_t* op, anycclRedOp_t which, anycclDataType_t value,
                                    anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(op, "op"));
    if (which != anycclMax && which != anycclMin)
      return error(Code::invalid_argument, "which is {}: it is anycclMax or anycclMin",
                   static_cast<int>(which));
    Operator made;
    made.function = locator_of(value, which == anycclMax);
    if (made.function == nullptr)
      return error(Code::unsupported,
                   "values have datatype {}: int32, int64, float32 and float64 "
                   "are possible",
                   static_cast<int>(value));
    ANYCCL_TRY(const ReduceOp name, comm->team->add_operator(made));
    *op = static_cast<anycclRedOp_t>(name);
    return {};
  });
}

anycclResult_t anycclRedOpDestroy(anycclRedOp_t op, anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    return comm->team->remove_operator(static_cast<ReduceOp>(op));
  });
}

anycclResult_t anycclReduceLocal(const void* in, void* inout, size_t count,
                                 anycclDataType_t datatype, anycclRedOp_t op, anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    Call call;
    call.dtype = static_cast<DType>(as_byte(datatype));
    call.op = number_of(op, comm);
    call.count = count;
    call.input = static_cast<const std::byte*>(in);
    call.output = static_cast<std::byte*>(inout);
    HeldOperator own;
    if (comm != nullptr) {
      ANYCCL_CHECK(need_comm(comm));
      own = comm->comm->operators().hold(call.op);
    }
    return reduce_local(call, own == nullptr ? nullptr : own->get());
  });
}
