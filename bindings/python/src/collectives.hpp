#pragma once
// The operations: shapes and types of arrays, and the calls of the library they become. The user's
// description of each is in docs/.

#include <optional>
#include <vector>

#include "operators.hpp"
#include "shapes.hpp"

namespace anyccl::python {

// collectives.cpp
nb::object all_reduce(Communicator& c, const Options& how, nb::handle x, const Op& op,
                      nb::handle out, nb::handle accumulate, nb::handle leaves);
/// The result is `out` or a new array; `x` gives its shape and type, and data at the root alone.
nb::object broadcast(Communicator& c, const Options& how, nb::handle x, int root, nb::handle out);
nb::object reduce(Communicator& c, const Options& how, nb::handle x, const Op& op, int root,
                  nb::handle out);
nb::object scan(Communicator& c, const Options& how, nb::handle x, const Op& op, nb::handle out);
/// Rank 0 has no result: it gets None, and its `out` is not written.
nb::object exscan(Communicator& c, const Options& how, nb::handle x, const Op& op, nb::handle out);
nb::object reduce_scatter(Communicator& c, const Options& how, nb::handle x, const Op& op,
                          nb::handle out, nb::handle accumulate, nb::handle leaves);
nb::object all_gather(Communicator& c, const Options& how, nb::handle x, nb::handle out);
nb::object gather(Communicator& c, const Options& how, nb::handle x, int root, nb::handle out);
/// Other ranks than the root give `x`, which is not read but has the shape and type, or `out`.
nb::object scatter(Communicator& c, const Options& how, nb::handle x, int root, nb::handle out);
nb::object all_to_all(Communicator& c, const Options& how, nb::handle x, nb::handle out);

// v_forms.cpp
nb::object all_to_all_v(Communicator& c, const Options& how, nb::handle x,
                        const Numbers& send_counts, const Numbers& recv_counts,
                        const MaybeNumbers& send_displs, const MaybeNumbers& recv_displs,
                        nb::handle out);
nb::object all_gather_v(Communicator& c, const Options& how, nb::handle x, const Numbers& counts,
                        const MaybeNumbers& displs, nb::handle out);
nb::object reduce_scatter_v(Communicator& c, const Options& how, nb::handle x,
                            const Numbers& counts, const Op& op, const MaybeNumbers& displs,
                            nb::handle out);
nb::object gather_v(Communicator& c, const Options& how, nb::handle x, const MaybeNumbers& counts,
                    int root, const MaybeNumbers& displs, nb::handle out);
nb::object scatter_v(Communicator& c, const Options& how, nb::handle x, const MaybeNumbers& counts,
                     int root, const MaybeNumbers& displs, nb::handle out);

// messages.cpp
nb::object barrier(Communicator& c, const Options& how);
nb::object send(Communicator& c, const Options& how, nb::handle x, int dst, int tag);
/// `src` none: of any rank.
nb::object recv(Communicator& c, const Options& how, nb::handle out, std::optional<int> src,
                int tag);
/// Waits for the next message, and returns its source and its size in bytes; `src` none: of any
/// rank. Raises InvalidUsage if it is not of uint8, and Timeout.
std::pair<int, std::size_t> probe_bytes(Communicator& c, std::optional<int> src, int tag);
/// A Work that receives this message; None if another thread has received it.
nb::object recv_found(Communicator& c, nb::handle out, int src, int tag);
/// One array, or None, for each rank.
nb::object all_to_all_w(Communicator& c, const Options& how, const nb::sequence& xs,
                        const nb::sequence& outs);

}  // namespace anyccl::python
