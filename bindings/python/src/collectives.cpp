#include "collectives.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace anyccl::python {

namespace {

/// The arguments of a sum that go into its configuration.
struct SumOptions {
  int accumulate = ANYCCL_CONFIG_UNDEF_INT, leaves = 0;  // 0: not given
};

/// Returns 0 for None. Raises TypeError, or InvalidArgument for a number less than 1.
int leaves_in(nb::handle given) {
  if (given.is_none()) return 0;
  int leaves = 0;
  if (!nb::try_cast(given, leaves)) throw nb::type_error("leaves is not an integer of 32 bits");
  if (leaves < 1) raise_invalid("leaves is " + std::to_string(leaves));
  return leaves;
}

SumOptions sum_options(nb::handle accumulate, nb::handle leaves) {
  SumOptions options;
  if (!accumulate.is_none()) options.accumulate = static_cast<int>(dtype_from(accumulate));
  options.leaves = leaves_in(leaves);
  return options;
}

/// Returns the shape of `x`; if `leaves` is not 0, that without the first dimension, written to
/// `room`. Raises InvalidArgument then unless the first dimension has this rank's leaves.
const Shape& shape_of_part(Communicator& c, const Array& x, int leaves, Shape& room) {
  if (leaves == 0) return x.shape;
  need_blocks(x.shape, static_cast<std::size_t>(std::max(1, leaves / c.size())),
              "leaves of this rank");
  return room = without_first(x.shape);
}

/// A sum whose result has the type of `out`.
void configure_sum(Request& r, const SumOptions& options) {
  const auto type = static_cast<anycclDataType_t>(r.result.array().dtype);
  const bool says_sum = options.accumulate != ANYCCL_CONFIG_UNDEF_INT;
  if (type == r.call.datatype && !says_sum && options.leaves == 0) return;
  anycclCollConfig_t& config = r.extras_on_demand().config;
  if (type != r.call.datatype) config.outputType = type;
  config.accumulateType = options.accumulate;
  if (options.leaves != 0) config.leaves = options.leaves;
  r.call.config = &config;
}

}  // namespace

nb::object all_reduce(Communicator& c, const Options& how, nb::handle x, const Op& op,
                      nb::handle out, nb::handle accumulate, nb::handle leaves) {
  Array in = Array::input(x, "x");
  const SumOptions options = sum_options(accumulate, leaves);
  Shape room;
  Result result = Result::of_sum(out, in, shape_of_part(c, in, options.leaves, room));
  const std::size_t count = result.array().count();
  Request r = request_of(anycclCollAllReduce, std::move(in), std::move(result), count);
  configure_sum(r, options);
  r.call.op = code_of(op, c, r.op);
  return c.run(std::move(r), how);
}

nb::object broadcast(Communicator& c, const Options& how, nb::handle x, int root, nb::handle out) {
  Array in;
  Result result;
  if (is_root(c, root))
    in = Array::input(x, "x");
  else if (!x.is_none())
    in = Array::like(x, "x");
  if (!is_root(c, root) && x.is_none()) {
    if (out.is_none()) raise_invalid("broadcast: ranks other than the root need x or out");
    result = Result(Array::output(out, "out"));
    in.dtype = result.array().dtype;
  } else {
    result = Result::make(out, in, in.shape);
  }
  Request r =
      request_of(anycclCollBroadcast, std::move(in), std::move(result), result.array().count());
  if (!is_root(c, root)) r.call.sendbuff = r.result.array().data;
  r.call.root = root;
  return c.run(std::move(r), how);
}

nb::object reduce(Communicator& c, const Options& how, nb::handle x, const Op& op, int root,
                  nb::handle out) {
  Array in = Array::input(x, "x");
  Result result = is_root(c, root) ? Result::make(out, in, in.shape) : Result();
  Request r = request_of(anycclCollReduce, std::move(in), std::move(result), in.count());
  r.call.op = code_of(op, c, r.op);
  r.call.root = root;
  return c.run(std::move(r), how);
}

nb::object scan(Communicator& c, const Options& how, nb::handle x, const Op& op, nb::handle out) {
  Array in = Array::input(x, "x");
  Result result = Result::make(out, in, in.shape);
  Request r = request_of(anycclCollScan, std::move(in), std::move(result), in.count());
  r.call.op = code_of(op, c, r.op);
  return c.run(std::move(r), how);
}

nb::object exscan(Communicator& c, const Options& how, nb::handle x, const Op& op, nb::handle out) {
  Array in = Array::input(x, "x");
  Result result = is_root(c, 0) ? Result() : Result::make(out, in, in.shape);
  Request r = request_of(anycclCollExscan, std::move(in), std::move(result), in.count());
  r.call.op = code_of(op, c, r.op);
  return c.run(std::move(r), how);
}

nb::object reduce_scatter(Communicator& c, const Options& how, nb::handle x, const Op& op,
                          nb::handle out, nb::handle accumulate, nb::handle leaves) {
  Array in = Array::input(x, "x");
  const SumOptions options = sum_options(accumulate, leaves);
  Shape room;
  const Shape& part = shape_of_part(c, in, options.leaves, room);
  need_blocks(c, part);
  Result result = Result::of_sum(out, in, without_first(part));
  const std::size_t count = result.array().count();
  Request r = request_of(anycclCollReduceScatter, std::move(in), std::move(result), count);
  configure_sum(r, options);
  r.call.op = code_of(op, c, r.op);
  return c.run(std::move(r), how);
}

nb::object all_gather(Communicator& c, const Options& how, nb::handle x, nb::handle out) {
  Array in = Array::input(x, "x");
  Result result = Result::make(out, in, with_first(c.size(), in.shape));
  Request r = request_of(anycclCollAllGather, std::move(in), std::move(result), in.count());
  return c.run(std::move(r), how);
}

nb::object gather(Communicator& c, const Options& how, nb::handle x, int root, nb::handle out) {
  Array in = Array::input(x, "x");
  Result result =
      is_root(c, root) ? Result::make(out, in, with_first(c.size(), in.shape)) : Result();
  Request r = request_of(anycclCollGather, std::move(in), std::move(result), in.count());
  r.call.root = root;
  return c.run(std::move(r), how);
}

nb::object scatter(Communicator& c, const Options& how, nb::handle x, int root, nb::handle out) {
  Array in;
  Result result;
  if (!is_root(c, root) && x.is_none()) {
    if (out.is_none()) raise_invalid("scatter: ranks other than the root need x or out");
    result = Result(Array::output(out, "out"));
    in.dtype = result.array().dtype;
  } else {
    in = is_root(c, root) ? Array::input(x, "x") : Array::like(x, "x");
    need_blocks(c, in.shape);
    result = Result::make(out, in, without_first(in.shape));
  }
  Request r =
      request_of(anycclCollScatter, std::move(in), std::move(result), result.array().count());
  if (!is_root(c, root)) r.call.sendbuff = nullptr;
  r.call.root = root;
  return c.run(std::move(r), how);
}

nb::object all_to_all(Communicator& c, const Options& how, nb::handle x, nb::handle out) {
  Array in = Array::input(x, "x");
  need_blocks(c, in.shape);
  Result result = Result::make(out, in, in.shape);
  const std::size_t block = in.count() / static_cast<std::size_t>(c.size());
  Request r = request_of(anycclCollAllToAll, std::move(in), std::move(result), block);
  return c.run(std::move(r), how);
}

}  // namespace anyccl::python
