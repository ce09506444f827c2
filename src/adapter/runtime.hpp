#pragma once

#include <memory>
#include <span>
#include <vector>

#include "anyccl/anyccl.h"
#include "framework/communicator/background_progress.hpp"
#include "framework/stream/stream.hpp"

namespace anyccl {

// How communicators come to be: the one place that knows every concrete transport and bootstrap.

inline constexpr std::size_t kAnyRing = ~std::size_t{0};  // as ring_bytes_for() has it

using CommPtr = std::shared_ptr<Comm>;

/// Makes an id and keeps the server behind it until its group is formed.
Result<anycclUniqueId> make_unique_id();
Result<CommPtr> join_by_id(const anycclUniqueId& id, int size, int rank);
Result<CommPtr> join_by_environment();
/// All ranks of one communicator, in this process.
Result<std::vector<CommPtr>> join_all_here(int size);
/// Collective over `parent`. Null for color ANYCCL_SPLIT_NOCOLOR.
Result<CommPtr> split(Comm& parent, int color, int key, std::size_t most_ring_bytes = kAnyRing);
/// The background thread of this process. Stopped at exit.
BackgroundProgress& background_progress();
/// Stopped at exit.
std::shared_ptr<HostStream> make_stream();

/// Memory that peers on this host read where it lies; see anycclMemAlloc and anycclMemRegister.
Result<void*> allocate_shared(std::size_t bytes);
Status free_shared(void* memory);
Status register_shared(void* memory, std::size_t bytes, int fd, std::size_t offset);
Status deregister_shared(void* memory);

}  // namespace anyccl
