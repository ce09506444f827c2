#include "framework/tuning/order_needs.hpp"

namespace anyccl {

Order tree_for(DType dtype) {
  const bool rounded = dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f8e4m3 ||
                       dtype == DType::f8e5m2;
  return rounded ? Order::tree_in_one_step : Order::tree;
}

bool is_exact(DType dtype, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod:
    case ReduceOp::avg:
      return dtype <= DType::u64 || dtype == DType::i16 || dtype == DType::u16 ||
             dtype == DType::boolean;
    default:
      return true;
  }
}

bool meets(const Algorithm& algorithm, const Shape& shape, Order need) {
  if (need == Order::position || !reduces(shape.collective) || shape.size == 1) return true;
  return algorithm.order(shape) >= need;
}

}  // namespace anyccl
