#include "shapes.hpp"

#include <algorithm>
#include <utility>

namespace anyccl::python {

Request request_of(anycclCollective_t what, Array&& in, Result&& out, std::size_t count) {
  Request r;
  r.call.collective = what;
  r.call.sendbuff = in.data;
  r.call.recvbuff = out.array().data;
  r.call.count = count;
  r.call.datatype = static_cast<anycclDataType_t>(in.dtype);
  r.input = std::move(in);
  r.result = std::move(out);
  return r;
}

Request request_of(Array&& in, Result&& out) {
  return request_of(anycclCollSend, std::move(in), std::move(out), 0);
}

void need_blocks(const Shape& x, std::size_t blocks, const char* what) {
  if (!x.empty() && static_cast<std::size_t>(x[0]) == blocks) return;
  raise_invalid("x has the shape " + to_string(x) +
                ", but its first dimension must have one entry for each of " +
                std::to_string(blocks) + " " + what);
}

Shape without_first(const Shape& shape) {
  return {shape.begin() + 1, shape.end()};
}

Shape row_of(const Array& x, const char* name) {
  if (x.shape.empty())
    raise_invalid(std::string(name) + " has no dimensions, but needs rows along the first");
  return without_first(x.shape);
}

BlockLayout layout_of(const Numbers& counts, const MaybeNumbers& displs, std::size_t row,
                      std::size_t blocks, const char* what) {
  if (counts.size() != blocks || (displs && displs->size() != blocks))
    raise_invalid("counts and displs need one entry for each of " + std::to_string(blocks) + " " +
                  what);
  BlockLayout layout;
  std::int64_t next = 0;
  for (std::size_t r = 0; r < blocks; ++r) {
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

void set_sent(Request& r, BlockLayout&& layout) {
  const BlockLayout& kept = r.extras_on_demand().sent = std::move(layout);
  r.call.sendcounts = kept.counts.data(), r.call.sdispls = kept.displs.data();
}

void set_received(Request& r, BlockLayout&& layout) {
  const BlockLayout& kept = r.extras_on_demand().received = std::move(layout);
  r.call.recvcounts = kept.counts.data(), r.call.rdispls = kept.displs.data();
}

}  // namespace anyccl::python
