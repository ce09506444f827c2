#include "framework/tuning/order_needs.hpp"

namespace anyccl {

OrderNeed need_of_tree(DType dtype) {
  const bool rounded = dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f8e4m3 ||
                       dtype == DType::f8e5m2;
  return rounded ? OrderNeed::tree_in_one_step : OrderNeed::tree;
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

bool meets(const Algorithm& algorithm, const Shape& shape, OrderNeed need) {
  if (need == OrderNeed::any || !reduces(shape.collective) || shape.size == 1) return true;
  if (algorithm.order(shape) != Order::tree) return false;
  if (need == OrderNeed::tree) return true;
  return algorithm.cost != nullptr && algorithm.cost(shape).roundings <= 1;
}

}  // namespace anyccl
