#pragma once

#include <memory>
#include <string>

#include "anyccl/status.hpp"
#include "simulate/calibration.hpp"
#include "simulate/devices/device_costs.hpp"

namespace anyccl::cli {

/// The constants of the model: a message of b bytes that meets no other one takes alpha_s + hop_s *
/// links + b / bytes_per_s, and its sender is busy for the first overhead_s of that; an addition of
/// b bytes takes b * gamma_s_per_byte.
struct Machine {
  double alpha_s = 5e-6;
  double hop_s = 0;
  double overhead_s = 0;
  double bytes_per_s = 25e9;
  double gamma_s_per_byte = 0;
  /// Takes the place of alpha, overhead and gamma, and moves messages inside a host by its cores
  /// instead of links.
  std::shared_ptr<const Calibration> calibration = {};
  std::shared_ptr<const DeviceCosts> devices = {};  ///< Takes the place of all of these.
  std::string inside = "shm", between = "tcp";      ///< Its links inside a host and between hosts.
};

/// From JSON such as {"format": "anyccl.machine/1", "alpha_us": 5, "hop_us": 0.1, "overhead_us":
/// 0.5, "GBps": 25, "reduce_GBps": 50}; a missing number stays as in `machine`. `name`: where the
/// text is from. Errors: invalid_argument naming it, the key, and what is allowed.
Result<Machine> read_machine(const std::string& text, const std::string& name,
                             Machine machine = {});

}  // namespace anyccl::cli
