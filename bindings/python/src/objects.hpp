#pragma once

#include <vector>

#include "communicator.hpp"

namespace anyccl::python {

/// Exchanges objects as bytes. `pickle`() returns a list of what this rank gives: one, or as the
/// root of a scatter one for each rank, or none; other ranks get the text of what it raises.
/// Returns a pair for each payload that comes here: whether it is such a text, and its bytes; if
/// there is such a text, only the texts are whole. Raises what pickle() has raised, and failures.
nb::list exchange_payloads(Communicator& c, anycclCollective_t what, const nb::callable& pickle,
                           int root);

/// Waits for exchanges of `c` that a signal has interrupted and that go on.
void wait_for_interrupted(const Communicator& c);

}  // namespace anyccl::python
