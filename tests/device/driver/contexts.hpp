#pragma once
// The primary contexts of devices, which live as long as the process, and the stack of each thread
// whose top is its current one.

#include <vector>

#include "platform/device/cuda/driver_api.hpp"
#include "streams.hpp"

struct anyccl::cuda::ContextTag {
  int device = 0;
  anyccl::cuda::Stream null_stream = nullptr;
  std::mutex functions;  ///< Functions of the host run one at a time, as in the driver's thread.
  std::mutex mutex;      ///< Guards what follows.
  int retained = 0;
  std::vector<anyccl::simulated::TicketPtr> left;  ///< Tails of destroyed streams.
};

namespace anyccl::simulated {

cuda::Context retain_context(int device);
cuda::Error release_context(int device);
/// Whether the handle is that of a context.
bool is_context(cuda::Context context);
/// The context of a device; null if nobody has retained it yet.
cuda::Context context_of(int device);

/// Null if the thread has none.
cuda::Context current_context();
/// The stack of the calling thread.
std::vector<cuda::Context>& context_stack();

/// The last work of a stream that is destroyed.
void leave_behind(cuda::Context context, TicketPtr tail);
std::vector<TicketPtr> left_behind(cuda::Context context);

}  // namespace anyccl::simulated
