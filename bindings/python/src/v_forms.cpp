// Collectives with blocks of different sizes.

#include <utility>

#include "collectives.hpp"

namespace anyccl::python {

nb::object all_to_all_v(Communicator& c, const Options& how, nb::handle x,
                        const Numbers& send_counts, const Numbers& recv_counts,
                        const MaybeNumbers& send_displs, const MaybeNumbers& recv_displs,
                        nb::handle out) {
  Array in = Array::input(x, "x");
  const Shape row = row_of(in, "x");
  BlockLayout sent = layout_of(c, send_counts, send_displs, count_of(row));
  BlockLayout received = layout_of(c, recv_counts, recv_displs, count_of(row));
  need_rows(in, sent.rows, !send_displs);
  Result result = gathered(out, in, row, received, recv_displs.has_value());
  Request r = request_of(anycclCollAllToAllv, std::move(in), std::move(result), 0);
  set_sent(r, std::move(sent));
  set_received(r, std::move(received));
  return c.run(std::move(r), how);
}

nb::object all_gather_v(Communicator& c, const Options& how, nb::handle x, const Numbers& counts,
                        const MaybeNumbers& displs, nb::handle out) {
  Array in = Array::input(x, "x");
  const Shape row = row_of(in, "x");
  BlockLayout received = layout_of(c, counts, displs, count_of(row));
  need_rows(in, counts[static_cast<std::size_t>(c.rank())], true);
  Result result = gathered(out, in, row, received, displs.has_value());
  Request r = request_of(anycclCollAllGatherv, std::move(in), std::move(result), in.count());
  set_received(r, std::move(received));
  return c.run(std::move(r), how);
}

nb::object reduce_scatter_v(Communicator& c, const Options& how, nb::handle x,
                            const Numbers& counts, const Op& op, const MaybeNumbers& displs,
                            nb::handle out) {
  Array in = Array::input(x, "x");
  const Shape row = row_of(in, "x");
  BlockLayout sent = layout_of(c, counts, displs, count_of(row));
  need_rows(in, sent.rows, !displs);
  Result result =
      Result::make(out, in, with_first(counts[static_cast<std::size_t>(c.rank())], row));
  Request r = request_of(anycclCollReduceScatterv, std::move(in), std::move(result),
                         result.array().count());
  r.call.op = code_of(op, c, r.op);
  set_sent(r, std::move(sent));
  return c.run(std::move(r), how);
}

nb::object gather_v(Communicator& c, const Options& how, nb::handle x, const MaybeNumbers& counts,
                    int root, const MaybeNumbers& displs, nb::handle out) {
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
  Request r = request_of(anycclCollGatherv, std::move(in), std::move(result), in.count());
  r.call.root = root;
  if (is_root(c, root)) set_received(r, std::move(received));
  return c.run(std::move(r), how);
}

nb::object scatter_v(Communicator& c, const Options& how, nb::handle x, const MaybeNumbers& counts,
                     int root, const MaybeNumbers& displs, nb::handle out) {
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
  Request r =
      request_of(anycclCollScatterv, std::move(in), std::move(result), result.array().count());
  r.call.root = root;
  if (is_root(c, root)) set_sent(r, std::move(sent));
  return c.run(std::move(r), how);
}

}  // namespace anyccl::python
