#include "framework/device/device_copies.hpp"

#include "base/error.hpp"

namespace anyccl {

DeviceCopies::~DeviceCopies() {
  const auto scope = generation_ == fork_generation()
                         ? DeviceScope::enter(*device_)
                         : Result<DeviceScope>(Status(Code::invalid_usage, "forked"));
  if (!scope.ok()) {
    static_cast<void>(memory_.release());
    return;
  }
  memory_ = nullptr;
  if (queue_ != nullptr) static_cast<void>(device_->drop_queue(queue_));
}

Result<DeviceQueue> DeviceCopies::queue() {
  const std::lock_guard lock(mutex_);
  if (queue_ == nullptr) {
    ANYCCL_TRY(queue_, device_->make_queue(true));
  }
  return queue_;
}

}  // namespace anyccl
