#pragma once
// The devices of this process.

#include <memory>
#include <string>
#include <vector>

#include "platform/device/device.hpp"

namespace anyccl {

/// The device of this number, as its driver counts; the same object as long as one has it. Loads
/// the driver. Errors: unsupported, if there is no driver or no such device; device_error.
Result<std::shared_ptr<Device>> open_device(int number);

/// The device of the calling thread, if the program has loaded a driver and uses one in this
/// thread, by its primary context; else null. Loads and starts no driver.
std::shared_ptr<Device> device_in_use();

/// For reports: a line about each device. Loads the driver. Empty, with the reason in `why`, if
/// there is none.
std::vector<std::string> describe_devices(std::string& why);

}  // namespace anyccl
