#pragma once
// How arrays, counts and offsets become a request: what all operations share.

#include <optional>
#include <vector>

#include "communicator.hpp"

namespace anyccl::python {

using Numbers = std::vector<std::int64_t>;  // of rows, one per rank or neighbour
using MaybeNumbers = std::optional<Numbers>;

/// Takes over `in` and `out`; `count` in elements.
Request request_of(anycclCollective_t what, Array&& in, Result&& out, std::size_t count);
/// One of `start`, which is no operation of anycclCall_t.
Request request_of(Array&& in, Result&& out);

inline bool is_root(Communicator& c, int root) {
  return c.rank() == root;
}
/// Raises InvalidArgument unless the first dimension of `x` has `blocks` entries, one for each of
/// `what`.
void need_blocks(const Shape& x, std::size_t blocks, const char* what);
inline void need_blocks(Communicator& c, const Shape& x) {
  need_blocks(x, static_cast<std::size_t>(c.size()), "ranks");
}
Shape without_first(const Shape& shape);
/// The shape of one row of `x`, which has blocks of different sizes along its first dimension.
Shape row_of(const Array& x, const char* name);

/// `blocks` of them, one for each of `what`; `row`: elements of a row. `displs` none: one block
/// after the other.
BlockLayout layout_of(const Numbers& counts, const MaybeNumbers& displs, std::size_t row,
                      std::size_t blocks, const char* what);
inline BlockLayout layout_of(Communicator& c, const Numbers& counts, const MaybeNumbers& displs,
                             std::size_t row) {
  return layout_of(counts, displs, row, static_cast<std::size_t>(c.size()), "ranks");
}
void need_rows(const Array& x, std::int64_t rows, bool exactly);
/// The result of joining blocks. With displs (`apart`) the caller's array may have more rows than
/// are written, and a new one has zeros between the blocks.
Result gathered(nb::handle out, const Array& like, const Shape& row, const BlockLayout& layout,
                bool apart);

void set_sent(Request& r, BlockLayout&& layout);
void set_received(Request& r, BlockLayout&& layout);

}  // namespace anyccl::python
