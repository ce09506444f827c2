#include "platform/link/connector.hpp"

#include <utility>

namespace anyccl::link {

void Connector::watch(std::weak_ptr<Context> context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watching_, [](const auto& one) { return one.expired(); });
  watching_.push_back(std::move(context));
}

void Connector::note_attached() {
  attached_.fetch_add(1, std::memory_order_seq_cst);
  const std::lock_guard lock(mutex_);
  for (const std::weak_ptr<Context>& weak : watching_)
    if (const auto context = weak.lock()) context->note_delivered();
}

}  // namespace anyccl::link
