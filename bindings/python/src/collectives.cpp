#include "collectives.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

namespace anyccl::python {
namespace {

// By ReduceOp.
constexpr std::array<std::string_view, anycclNumOps> kOpNames = {
    "sum", "prod", "max", "min", "avg", "land", "lor", "lxor", "band", "bor", "bxor"};

anycclRedOp_t op_named(const std::string& name) {
  const auto* found = std::find(kOpNames.begin(), kOpNames.end(), name);
  if (found != kOpNames.end()) return static_cast<anycclRedOp_t>(found - kOpNames.begin());
  std::string known;
  for (const std::string_view one : kOpNames)
    known += (known.empty() ? "" : ", ") + std::string(one);
  raise_invalid("op is '" + name + "'; it is one of " + known);
}

anycclRedOp_t code_of(const Op& op, const Communicator& c) {
  if (const auto* name = std::get_if<std::string>(&op)) return op_named(*name);
  if (const auto* known = std::get_if<ReduceOp>(&op)) return static_cast<anycclRedOp_t>(*known);
  const PreMulSum* own = std::get<PreMulSum*>(op);
  if (own == nullptr) raise_invalid("op is None");
  if (own->comm.get() != &c) raise_invalid("op belongs to another communicator");
  return own->op;
}

anycclCall_t call_of(anycclCollective_t what, const Array& in, const Result& out,
                     std::size_t count) {
  anycclCall_t call{};
  call.collective = what;
  call.sendbuff = in.data;
  call.recvbuff = out.array().data;
  call.count = count;
  call.datatype = static_cast<anycclDataType_t>(in.dtype);
  return call;
}

bool is_root(const Communicator& c, int root) {
  return c.rank() == root;
}

void need_blocks(const Communicator& c, const Array& x) {
  if (x.shape.empty() || x.shape[0] != c.size())
    raise_invalid("x has the shape " + to_string(x.shape) +
                  ", but its first dimension must have one entry for each of " +
                  std::to_string(c.size()) + " ranks");
}

Shape without_first(const Shape& shape) {
  return {shape.begin() + 1, shape.end()};
}

/// The shape of one row of `x`, which has blocks of different sizes along its first dimension.
Shape row_of(const Array& x, const char* name) {
  if (x.shape.empty())
    raise_invalid(std::string(name) + " has no dimensions, but needs rows along the first");
  return without_first(x.shape);
}

/// Blocks of different sizes, in elements.
struct BlockLayout {
  std::vector<std::size_t> counts, displs;
  std::int64_t rows = 0;  // the least that the array must have
};

/// `displs` none: one block after the other.
BlockLayout layout_of(const Communicator& c, const Numbers& counts, const MaybeNumbers& displs,
                      std::size_t row) {
  const auto ranks = static_cast<std::size_t>(c.size());
  if (counts.size() != ranks || (displs && displs->size() != ranks))
    raise_invalid("counts and displs need one entry for each of " + std::to_string(ranks) +
                  " ranks");
  BlockLayout layout;
  std::int64_t next = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::int64_t at = displs ? (*displs)[r] : next;
    if (counts[r] < 0 || at < 0) raise_invalid("counts and displs must not be negative");
    next += counts[r];
    layout.rows = std::max(layout.rows, at + counts[r]);
    layout.counts.push_back(static_cast<std::size_t>(counts[r]) * row);
    layout.displs.push_back(static_cast<std::size_t>(at) * row);
  }
  return layout;
}

void need_rows(const Array& x, std::int64_t rows, bool exactly) {
  if (exactly ? x.shape[0] == rows : x.shape[0] >= rows) return;
  raise_invalid("x has " + std::to_string(x.shape[0]) + " rows, but counts and displs ask for " +
                std::to_string(rows));
}

/// The result of joining blocks from all ranks. With `displs` the caller's array may have more
/// rows than are written, and a new one has zeros between the blocks.
Result gathered(nb::handle out, const Array& like, const Shape& row, const BlockLayout& layout,
                bool apart) {
  if (apart && !out.is_none()) {
    Result given = Result(Array::output(out, "out"));
    const Array& a = given.array();
    const bool fits = a.dtype == like.dtype && !a.shape.empty() && without_first(a.shape) == row &&
                      a.shape[0] >= layout.rows;
    if (!fits)
      raise_invalid("out is of " + std::string(info(a.dtype).name) + " with the shape " +
                    to_string(a.shape) + ", but needs " + std::string(info(like.dtype).name) +
                    " and at least " + to_string(with_first(layout.rows, row)));
    return given;
  }
  return Result::make(out, like, with_first(layout.rows, row), apart);
}

void set_sent(anycclCall_t& call, const BlockLayout& layout) {
  call.sendcounts = layout.counts.data(), call.sdispls = layout.displs.data();
}
void set_received(anycclCall_t& call, const BlockLayout& layout) {
  call.recvcounts = layout.counts.data(), call.rdispls = layout.displs.data();
}

}  // namespace

nb::object all_reduce(Communicator& c, nb::handle x, const Op& op, nb::handle out, bool async) {
  Array in = Array::input(x, "x");
  Result result = Result::make(out, in, in.shape);
  anycclCall_t call = call_of(anycclCollAllReduce, in, result, in.count());
  call.op = code_of(op, c);
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object broadcast(Communicator& c, nb::handle x, int root, nb::handle out, bool async) {
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
  anycclCall_t call = call_of(anycclCollBroadcast, in, result, result.array().count());
  if (!is_root(c, root)) call.sendbuff = result.array().data;
  call.root = root;
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object reduce(Communicator& c, nb::handle x, const Op& op, int root, nb::handle out,
                  bool async) {
  Array in = Array::input(x, "x");
  Result result = is_root(c, root) ? Result::make(out, in, in.shape) : Result();
  anycclCall_t call = call_of(anycclCollReduce, in, result, in.count());
  call.op = code_of(op, c);
  call.root = root;
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object scan(Communicator& c, nb::handle x, const Op& op, nb::handle out, bool async) {
  Array in = Array::input(x, "x");
  Result result = Result::make(out, in, in.shape);
  anycclCall_t call = call_of(anycclCollScan, in, result, in.count());
  call.op = code_of(op, c);
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object exscan(Communicator& c, nb::handle x, const Op& op, nb::handle out, bool async) {
  Array in = Array::input(x, "x");
  Result result = is_root(c, 0) ? Result() : Result::make(out, in, in.shape);
  anycclCall_t call = call_of(anycclCollExscan, in, result, in.count());
  call.op = code_of(op, c);
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object reduce_scatter(Communicator& c, nb::handle x, const Op& op, nb::handle out, bool async) {
  Array in = Array::input(x, "x");
  need_blocks(c, in);
  Result result = Result::make(out, in, without_first(in.shape));
  anycclCall_t call = call_of(anycclCollReduceScatter, in, result, result.array().count());
  call.op = code_of(op, c);
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object all_gather(Communicator& c, nb::handle x, nb::handle out, bool async) {
  Array in = Array::input(x, "x");
  Result result = Result::make(out, in, with_first(c.size(), in.shape));
  const anycclCall_t call = call_of(anycclCollAllGather, in, result, in.count());
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object gather(Communicator& c, nb::handle x, int root, nb::handle out, bool async) {
  Array in = Array::input(x, "x");
  Result result =
      is_root(c, root) ? Result::make(out, in, with_first(c.size(), in.shape)) : Result();
  anycclCall_t call = call_of(anycclCollGather, in, result, in.count());
  call.root = root;
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object scatter(Communicator& c, nb::handle x, int root, nb::handle out, bool async) {
  Array in;
  Result result;
  if (!is_root(c, root) && x.is_none()) {
    if (out.is_none()) raise_invalid("scatter: ranks other than the root need x or out");
    result = Result(Array::output(out, "out"));
    in.dtype = result.array().dtype;
  } else {
    in = is_root(c, root) ? Array::input(x, "x") : Array::like(x, "x");
    need_blocks(c, in);
    result = Result::make(out, in, without_first(in.shape));
  }
  anycclCall_t call = call_of(anycclCollScatter, in, result, result.array().count());
  if (!is_root(c, root)) call.sendbuff = nullptr;
  call.root = root;
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object all_to_all(Communicator& c, nb::handle x, nb::handle out, bool async) {
  Array in = Array::input(x, "x");
  need_blocks(c, in);
  Result result = Result::make(out, in, in.shape);
  const std::size_t block = in.count() / static_cast<std::size_t>(c.size());
  const anycclCall_t call = call_of(anycclCollAllToAll, in, result, block);
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object all_to_all_v(Communicator& c, nb::handle x, const Numbers& send_counts,
                        const Numbers& recv_counts, const MaybeNumbers& send_displs,
                        const MaybeNumbers& recv_displs, nb::handle out, bool async) {
  Array in = Array::input(x, "x");
  const Shape row = row_of(in, "x");
  const BlockLayout sent = layout_of(c, send_counts, send_displs, count_of(row));
  const BlockLayout received = layout_of(c, recv_counts, recv_displs, count_of(row));
  need_rows(in, sent.rows, !send_displs);
  Result result = gathered(out, in, row, received, recv_displs.has_value());
  anycclCall_t call = call_of(anycclCollAllToAllv, in, result, 0);
  set_sent(call, sent);
  set_received(call, received);
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object all_gather_v(Communicator& c, nb::handle x, const Numbers& counts,
                        const MaybeNumbers& displs, nb::handle out, bool async) {
  Array in = Array::input(x, "x");
  const Shape row = row_of(in, "x");
  const BlockLayout received = layout_of(c, counts, displs, count_of(row));
  need_rows(in, counts[static_cast<std::size_t>(c.rank())], true);
  Result result = gathered(out, in, row, received, displs.has_value());
  anycclCall_t call = call_of(anycclCollAllGatherv, in, result, in.count());
  set_received(call, received);
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object reduce_scatter_v(Communicator& c, nb::handle x, const Numbers& counts, const Op& op,
                            const MaybeNumbers& displs, nb::handle out, bool async) {
  Array in = Array::input(x, "x");
  const Shape row = row_of(in, "x");
  const BlockLayout sent = layout_of(c, counts, displs, count_of(row));
  need_rows(in, sent.rows, !displs);
  Result result =
      Result::make(out, in, with_first(counts[static_cast<std::size_t>(c.rank())], row));
  anycclCall_t call = call_of(anycclCollReduceScatterv, in, result, result.array().count());
  call.op = code_of(op, c);
  set_sent(call, sent);
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object gather_v(Communicator& c, nb::handle x, const MaybeNumbers& counts, int root,
                    const MaybeNumbers& displs, nb::handle out, bool async) {
  Array in = Array::input(x, "x");
  const Shape row = row_of(in, "x");
  Result result;
  BlockLayout received;
  if (is_root(c, root)) {
    if (!counts) raise_invalid("gather_v: the root needs counts");
    received = layout_of(c, *counts, displs, count_of(row));
    need_rows(in, (*counts)[static_cast<std::size_t>(root)], true);
    result = gathered(out, in, row, received, displs.has_value());
  }
  anycclCall_t call = call_of(anycclCollGatherv, in, result, in.count());
  call.root = root;
  if (is_root(c, root)) set_received(call, received);
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object scatter_v(Communicator& c, nb::handle x, const MaybeNumbers& counts, int root,
                     const MaybeNumbers& displs, nb::handle out, bool async) {
  Array in;
  Result result;
  BlockLayout sent;
  if (is_root(c, root)) {
    if (!counts) raise_invalid("scatter_v: the root needs counts");
    in = Array::input(x, "x");
    const Shape row = row_of(in, "x");
    sent = layout_of(c, *counts, displs, count_of(row));
    need_rows(in, sent.rows, !displs);
    result = Result::make(out, in, with_first((*counts)[static_cast<std::size_t>(root)], row));
  } else {
    if (out.is_none()) raise_invalid("scatter_v: ranks other than the root need out");
    result = Result(Array::output(out, "out"));
    in.dtype = result.array().dtype;
  }
  anycclCall_t call = call_of(anycclCollScatterv, in, result, result.array().count());
  call.root = root;
  if (is_root(c, root)) set_sent(call, sent);
  return c.run(call, std::move(in), std::move(result), async);
}

nb::object barrier(Communicator& c, bool async) {
  anycclCall_t call{};
  call.collective = anycclCollBarrier;
  call.datatype = anycclFloat32;
  return c.run(call, Array(), Result(), async);
}

nb::object send(Communicator& c, nb::handle x, int dst, int tag, bool async) {
  Array in = Array::input(x, "x");
  anycclCall_t call = call_of(anycclCollSend, in, Result(), in.count());
  call.root = dst;
  call.tag = tag;
  return c.run(call, std::move(in), Result(), async);
}

nb::object recv(Communicator& c, nb::handle out, std::optional<int> src, int tag, bool async) {
  Result result(Array::output(out, "out"));
  anycclCall_t call = call_of(anycclCollRecv, result.array(), result, result.array().count());
  call.sendbuff = nullptr;
  call.root = src.value_or(ANYCCL_ANY_SOURCE);
  call.tag = tag;
  return c.run(call, Array(), std::move(result), async);
}

}  // namespace anyccl::python
