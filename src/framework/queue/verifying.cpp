// CollectiveQueue: behind each collective that is verified runs its check, a collective of its own.

#include "algorithm/schedule/contract.hpp"
#include "base/error.hpp"
#include "framework/queue/collective_queue.hpp"
#include "framework/tuning/order_needs.hpp"

namespace anyccl {

Result<Method> CollectiveQueue::method_of(const Call& call) {
  if (call.is_point_to_point() || call.collective == Collective::barrier) return Method();
  ANYCCL_TRY(const ElementTypes types, plans_.types_of(call));
  const auto created = plans_.operators().find(call.op);
  return anyccl::method_of(call, types.sum, types.output, created.get(), me_.size);
}

/// The verification of the next call.
Result<std::shared_ptr<Verification>> CollectiveQueue::verification_of(const Call& call,
                                                                       const PreparedCall& prepared,
                                                                       const Method& method) {
  ANYCCL_TRY(const ElementTypes types, plans_.types_of(call));
  VerifiedCall verified{.call = call,
                        .me = me_.rank,
                        .size = me_.size,
                        .sequence = sequence_ + 1,
                        .secret = me_.verify.secret,
                        .method = method,
                        .output = types.output,
                        .parts = prepared.input.folding.leaves,
                        .roundings = {},
                        .op = prepared.op};
  if (method.family == Family::floats) {
    const Shape& shape = prepared.routed->plan.schedule.contract.shape();
    verified.roundings =
        roundings_of(method.dtype, types.output,
                     {.ranks = me_.size * static_cast<int>(verified.parts),
                      .is_tree = meets(*prepared.routed->algorithm, shape, tree_for(types.sum)),
                      .is_average = call.op == ReduceOp::avg,
                      .is_multiplied = prepared.op != nullptr,
                      .is_complex = method.per_element == 2});
  }
  return std::make_shared<Verification>(verified, [this](Rank r) { return me_.names[uindex(r)]; });
}

/// Two neighbours in the queue: the call, and its check, which starts when that is done. The caller
/// gets the check's operation, unless it does not wait for it.
Result<std::shared_ptr<Operation>> CollectiveQueue::add_verified(const Call& call,
                                                                 const CallKey& key, Gate gate) {
  ANYCCL_TRY(const Method method, method_of(call));
  const auto first = make(call);
  ANYCCL_TRY(first->prepared, plans_.find(first->kept.call(), key));
  ANYCCL_TRY(first->verification, verification_of(call, *first->prepared, method));
  const Call check = first->verification->check();
  const auto second = make(check);
  ANYCCL_TRY(second->prepared, plans_.plan(check, CallKey(check, me_.rank)));
  second->verification = first->verification;
  second->is_check = true;
  second->is_extra = me_.verify.later;
  if (me_.verify.later) {
    first->execution.set(gate);
  } else {
    second->execution.set(gate);
    first->check = second;
    first->execution.stand_behind(second->execution);
  }
  for (const auto& queued : {first, second}) {
    queued->execution.limit(call.timeout);
    push(queued, gate);
  }
  ++checks_;
  has_extra_ = me_.verify.later;
  const auto& waited_for = me_.verify.later ? first : second;
  return std::shared_ptr<Operation>(waited_for, &waited_for->execution);
}

}  // namespace anyccl
