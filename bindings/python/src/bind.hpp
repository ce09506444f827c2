#pragma once
// What the files that describe the module to Python share; each is about one subject.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "operators.hpp"
#include "stream.hpp"

namespace anyccl::python {

using nb::literals::operator""_a;

void bind_unique_id(nb::module_& m);
void bind_operators(nb::module_& m);
void bind_work(nb::module_& m);
void bind_streams(nb::module_& m);
void bind_groups(nb::module_& m);
void bind_neighbors(nb::module_& m);
void bind_metrics(nb::module_& m);
void bind_algorithms(nb::module_& m);
void bind_routing(nb::module_& m);
void bind_sparse(nb::module_& m);
void bind_codec(nb::module_& m);
void bind_window(nb::module_& m);

using CommunicatorClass = nb::class_<Communicator>;
/// Binds creation, and the end: finalize(), destroy(), abort() and revoke().
void bind_creation(CommunicatorClass& c);
/// Binds what a communicator is, its time limit, and the creation of operators.
void bind_state(CommunicatorClass& c);
void bind_collectives(CommunicatorClass& c);
void bind_messages(CommunicatorClass& c);
void bind_v_forms(CommunicatorClass& c);
void bind_objects(CommunicatorClass& c);
void bind_route(CommunicatorClass& c);
void bind_windows(CommunicatorClass& c);

/// Raises TypeError if one is of another type.
Options options_of(bool async, nb::handle stream, nb::handle timeout);

/// An operation with its options as arguments of their own, behind the others. As handles, because
/// most calls have none of them, and conversions take time.
template <typename... A>
auto with_options(nb::object (*operation)(Communicator&, const Options&, A...)) {
  return [operation](Communicator& c, A... a, bool async, nb::handle stream, nb::handle timeout) {
    return operation(c, options_of(async, stream, timeout), std::forward<A>(a)...);
  };
}

// Signatures of the operations, which nanobind would write with its own names.
#define ANYCCL_SEQUENCE "collections.abc.Sequence[int]"
#define ANYCCL_OP "op: ReduceOp | str | Operator = \"sum\""
#define ANYCCL_STREAM "stream: Stream | None = None"
#define ANYCCL_OPTIONS "async_op: bool = False, " ANYCCL_STREAM ", timeout: float | None = None)"
#define ANYCCL_OUT "out: object | None = None, "
#define ANYCCL_END ", *, " ANYCCL_OUT ANYCCL_OPTIONS " -> typing.Any"
#define ANYCCL_SUM_END \
  ", *, " ANYCCL_OUT   \
  "accumulate: object | None = None, leaves: int | None = None, " ANYCCL_OPTIONS " -> typing.Any"

}  // namespace anyccl::python
