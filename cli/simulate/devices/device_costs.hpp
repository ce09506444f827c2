#pragma once

#include <string>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// The constants of a model of devices on one host, each with a link of its own to the host's
/// memory.
struct DeviceCosts {
  double link_bytes_per_s = 26e9;     ///< A link has so much, in each direction,
  double device_bytes_per_s = 700e9;  ///< and the memory of a device.
  double copy_s = 1.7e-6;             ///< Until a copy begins, and
  double kernel_s = 2.5e-6;           ///< a kernel.
  double word_s = 0.9e-6;             ///< A queue writes a word, or has seen it.
  double call_s = 1.4e-6;             ///< The host needs it for each command of a queue,
  double small_call_s = 0.7e-6;       ///< and this for any other function of the driver.
};

/// From JSON such as {"format": "anyccl.devices/1", "link_GBps": 26, "copy_us": 1.7}; a missing
/// number is as above. `name`: where the text is from. Errors: invalid_argument naming it, the key,
/// and what is allowed.
Result<DeviceCosts> read_device_costs(const std::string& text, const std::string& name);

}  // namespace anyccl::cli
