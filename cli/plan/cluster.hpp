#pragma once

#include <string>

namespace anyccl::cli {

/// What one device does; a rate is of one direction.
struct Device {
  std::string name;
  double bf16_TFLOPs = 0, fp8_TFLOPs = 0;  ///< As the data sheet says; fp8 0: it has none.
  double memory_GB = 0, memory_GBps = 0;   ///< 10^9 bytes.
  /// A matrix product runs at `best_efficiency` * hidden / (hidden + half_hidden) of the peak: the
  /// wider the model, the better.
  double best_efficiency = 0, half_hidden = 0;
};

/// What one device sends, and how long a message takes at least.
struct LinkSpeed {
  double GBps = 0, latency_us = 0;
};

/// Equal hosts of equal devices. Each device has its own way to the network.
struct Cluster {
  std::string name, source;
  int devices = 0, devices_per_host = 0;
  Device device;
  LinkSpeed inside;           ///< Between devices of a host.
  LinkSpeed between;          ///< Between hosts.
  std::string measured = {};  ///< Which of them were measured, where and when; empty: none.

  /// Whether all groups of so many devices next to each other, from device 0 on, are within hosts.
  bool keeps_together(int group) const {
    return group <= devices_per_host &&
           (devices <= devices_per_host || devices_per_host % group == 0);
  }
};

}  // namespace anyccl::cli
