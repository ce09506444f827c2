#include "framework/device/device_copies.hpp"

#include "base/error.hpp"

namespace anyccl {

DeviceCopies::~DeviceCopies() {
  if (queue_ == nullptr || is_inherited()) return;
  const auto scope = DeviceScope::enter(*device_);
  if (scope.ok()) static_cast<void>(device_->drop_queue(queue_));
}

Result<DeviceQueue> DeviceCopies::queue() {
  const std::lock_guard lock(mutex_);
  if (queue_ == nullptr) {
    ANYCCL_TRY(queue_, device_->make_queue(true));
  }
  return queue_;
}

}  // namespace anyccl
