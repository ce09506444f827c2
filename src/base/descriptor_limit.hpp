#pragma once
// A rank of a large group has more connections than `ulimit -n` allows at first. Listeners raise
// that limit before they open sockets, and errors name it.

#include <cstddef>

namespace anyccl {

/// Raises this process's soft limit of descriptors (`ulimit -n`) to the hard one, by which many
/// connections can be made; at most to a million, as some programs close all that there may be.
/// Once per process: what the program sets afterwards stays. Any thread.
void raise_descriptor_limit();

/// How many descriptors this process may have now.
std::size_t descriptor_limit();

}  // namespace anyccl
