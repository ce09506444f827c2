#pragma once
// The collectives: shapes and types of arrays, and the calls of the library they become.
// The user's description of each is in docs.hpp.

#include <optional>
#include <variant>
#include <vector>

#include "anyccl/types.hpp"
#include "communicator.hpp"

namespace anyccl::python {

using Op = std::variant<ReduceOp, std::string, PreMulSum*>;
using Numbers = std::vector<std::int64_t>;  // of rows, one per rank
using MaybeNumbers = std::optional<Numbers>;

nb::object all_reduce(Communicator& c, nb::handle x, const Op& op, nb::handle out, bool async);
nb::object broadcast(Communicator& c, nb::handle x, int root, nb::handle out, bool async);
nb::object reduce(Communicator& c, nb::handle x, const Op& op, int root, nb::handle out,
                  bool async);
nb::object scan(Communicator& c, nb::handle x, const Op& op, nb::handle out, bool async);
nb::object exscan(Communicator& c, nb::handle x, const Op& op, nb::handle out, bool async);
nb::object reduce_scatter(Communicator& c, nb::handle x, const Op& op, nb::handle out, bool async);
nb::object all_gather(Communicator& c, nb::handle x, nb::handle out, bool async);
nb::object gather(Communicator& c, nb::handle x, int root, nb::handle out, bool async);
nb::object scatter(Communicator& c, nb::handle x, int root, nb::handle out, bool async);
nb::object all_to_all(Communicator& c, nb::handle x, nb::handle out, bool async);
nb::object all_to_all_v(Communicator& c, nb::handle x, const Numbers& send_counts,
                        const Numbers& recv_counts, const MaybeNumbers& send_displs,
                        const MaybeNumbers& recv_displs, nb::handle out, bool async);
nb::object all_gather_v(Communicator& c, nb::handle x, const Numbers& counts,
                        const MaybeNumbers& displs, nb::handle out, bool async);
nb::object reduce_scatter_v(Communicator& c, nb::handle x, const Numbers& counts, const Op& op,
                            const MaybeNumbers& displs, nb::handle out, bool async);
nb::object gather_v(Communicator& c, nb::handle x, const MaybeNumbers& counts, int root,
                    const MaybeNumbers& displs, nb::handle out, bool async);
nb::object scatter_v(Communicator& c, nb::handle x, const MaybeNumbers& counts, int root,
                     const MaybeNumbers& displs, nb::handle out, bool async);
nb::object barrier(Communicator& c, bool async);
nb::object send(Communicator& c, nb::handle x, int dst, int tag, bool async);
/// `src` none: of any rank.
nb::object recv(Communicator& c, nb::handle out, std::optional<int> src, int tag, bool async);

}  // namespace anyccl::python
