#include "contexts.hpp"

#include <algorithm>
#include <array>

#include "settings.hpp"

namespace anyccl::simulated {
namespace {

/// A context is written once; readers acquire what the thread that made it has written to it.
std::array<std::atomic<cuda::Context>, kMostDevices>& contexts() {
  static std::array<std::atomic<cuda::Context>, kMostDevices> all{};
  return all;
}

}  // namespace

cuda::Context context_of(int device) {
  // Pairs with the release in retain_context().
  return contexts()[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
}

cuda::Context retain_context(int device) {
  static std::mutex& making = *new std::mutex;
  const std::lock_guard lock(making);
  cuda::Context context = context_of(device);
  if (context == nullptr) {
    context = new cuda::ContextTag;
    context->device = device;
    context->null_stream = make_stream(context, true, 0);
    // Pairs with the acquire in context_of().
    contexts()[static_cast<std::size_t>(device)].store(context, std::memory_order_release);
  }
  const std::lock_guard count(context->mutex);
  ++context->retained;
  return context;
}

cuda::Error release_context(int device) {
  const cuda::Context context = context_of(device);
  if (context == nullptr) return cuda::kInvalidContext;
  const std::lock_guard lock(context->mutex);
  if (context->retained == 0) return cuda::kInvalidContext;
  --context->retained;
  return cuda::kSuccess;
}

bool is_context(cuda::Context context) {
  if (context == nullptr) return false;
  return std::any_of(contexts().begin(), contexts().end(), [&](const auto& one) {
    return one.load(std::memory_order_acquire) == context;  // pairs with retain_context()
  });
}

cuda::Context current_context() {
  return context_stack().empty() ? nullptr : context_stack().back();
}

std::vector<cuda::Context>& context_stack() {
  thread_local std::vector<cuda::Context> stack;
  return stack;
}

void leave_behind(cuda::Context context, TicketPtr tail) {
  const std::lock_guard lock(context->mutex);
  std::erase_if(context->left, [](const TicketPtr& one) { return one->is_done(); });
  if (tail != nullptr) context->left.push_back(std::move(tail));
}

std::vector<TicketPtr> left_behind(cuda::Context context) {
  const std::lock_guard lock(context->mutex);
  return context->left;
}

}  // namespace anyccl::simulated
