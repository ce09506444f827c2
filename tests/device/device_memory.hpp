#pragma once
// What tests of calls on devices need: bytes on a device, and queues that are held up.

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <thread>

#include "platform/device/devices.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {

/// The device of this number is that of the calling thread as long as this lives, so that
/// communicators made here have it.
class CurrentDevice {
 public:
  explicit CurrentDevice(int number) : device_(*open_device(number)) {
    EXPECT_OK(device_->enter());
  }
  ~CurrentDevice() { device_->leave(); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  Device& operator*() const { return *device_; }
  Device* operator->() const { return device_.get(); }

  /// Returns when the queue has come to here.
  void await(DeviceQueue queue) const {
    const DeviceMoment moment = *device_->make_moment();
    EXPECT_OK(device_->record(queue, moment));
    for (auto past = device_->is_past(moment); past.ok() && !*past; past = device_->is_past(moment))
      std::this_thread::yield();
    EXPECT_OK(device_->drop_moment(moment));
  }

 private:
  std::shared_ptr<Device> device_;
};

/// Pages of the host that the device may read and write.
class Pinned {
 public:
  Pinned(Device& device, std::size_t bytes) : device_(device), bytes_(bytes) {
    at_ = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    EXPECT_OK(device.pin(at_, bytes, false));
  }
  ~Pinned() {
    EXPECT_OK(device_.unpin(at_));
    munmap(at_, bytes_);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::byte* at() const { return at_; }
  std::uint32_t* word() const { return reinterpret_cast<std::uint32_t*>(at_); }

 private:
  Device& device_;
  std::size_t bytes_;
  std::byte* at_;
};

/// Memory of a device with these bytes in it.
class OnDevice {
 public:
  OnDevice(const CurrentDevice& device, std::span<const std::byte> bytes)
      : device_(device),
        bytes_(bytes.size()),
        at_(*device->allocate(std::max<std::size_t>(bytes_, 1))) {
    const Pinned copy(*device, bytes_ + 1);
    std::copy(bytes.begin(), bytes.end(), copy.at());
    move(at_, copy.at());
  }
  ~OnDevice() { EXPECT_OK(device_->release(at_)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  std::byte* at() const { return static_cast<std::byte*>(at_); }
  std::vector<std::byte> bytes() const {
    const Pinned copy(*device_, bytes_ + 1);
    move(copy.at(), at_);
    return {copy.at(), copy.at() + bytes_};
  }

 private:
  void move(void* to, const void* from) const {
    const DeviceQueue queue = *device_->make_queue(false);
    EXPECT_OK(device_->copy(queue, to, from, bytes_));
    device_.await(queue);
    EXPECT_OK(device_->drop_queue(queue));
  }

  const CurrentDevice& device_;
  std::size_t bytes_;
  void* at_;
};

/// Eight bytes of a device that has them from the host.
inline OnDevice eight_bytes(const CurrentDevice& device, std::uint64_t value) {
  return {device, std::as_bytes(std::span(&value, 1))};
}
inline std::uint64_t value_of(const OnDevice& memory) {
  std::uint64_t value = 0;
  std::memcpy(&value, memory.bytes().data(), sizeof value);
  return value;
}

/// The number of a device that a rank has for itself; 0 if there are not so many.
inline int own_device(const Communicator& comm) {
  const int rank = index(comm.rank());
  return open_device(rank).ok() ? rank : 0;
}

/// The device of a rank of run_ranks(), which are made while one is current.
inline int device_of(Communicator& comm) {
  int number = -1;
  EXPECT_EQ(anycclCommCuDevice(comm.handle(), &number), anycclSuccess);
  return number;
}

}  // namespace anyccl::test
