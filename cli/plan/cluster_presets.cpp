#include "plan/presets.hpp"

namespace anyccl::cli {
namespace {

// The two numbers of a device's efficiency are fitted on A100s (docs/lab/plan.md#how-good-it-is)
// and taken over for the others.
constexpr Preset kClusters[] = {
    {"a100", R"({
  "format": "anyccl.cluster/1", "name": "a100",
  "source": "NVIDIA A100 data sheet; NVLink 300 GB/s one way, 80 % of it; 200 Gbit/s InfiniBand per device",
  "devices": 64, "devices_per_host": 8,
  "device": {"name": "A100", "bf16_TFLOPs": 312, "memory_GB": 80, "memory_GBps": 2039,
             "best_efficiency": 0.77, "half_hidden": 3200},
  "inside": {"GBps": 240, "latency_us": 2}, "between": {"GBps": 25, "latency_us": 5}})"},
    {"h100", R"({
  "format": "anyccl.cluster/1", "name": "h100",
  "source": "NVIDIA H100 data sheet; NVLink 450 GB/s one way, 80 % of it; 400 Gbit/s per device",
  "devices": 64, "devices_per_host": 8,
  "device": {"name": "H100", "bf16_TFLOPs": 989.5, "fp8_TFLOPs": 1979, "memory_GB": 80, "memory_GBps": 3350,
             "best_efficiency": 0.77, "half_hidden": 3200},
  "inside": {"GBps": 360, "latency_us": 2}, "between": {"GBps": 50, "latency_us": 5}})"},
    {"h800", R"({
  "format": "anyccl.cluster/1", "name": "h800",
  "source": "Zhao et al., Insights into DeepSeek-V3, 2025: NVLink 160 GB/s and 400 Gbit/s InfiniBand per device; otherwise as H100",
  "devices": 2048, "devices_per_host": 8,
  "device": {"name": "H800", "bf16_TFLOPs": 989.5, "fp8_TFLOPs": 1979, "memory_GB": 80, "memory_GBps": 3350,
             "best_efficiency": 0.77, "half_hidden": 3200},
  "inside": {"GBps": 160, "latency_us": 2}, "between": {"GBps": 50, "latency_us": 5}})"},
};

}  // namespace

std::span<const Preset> cluster_presets() {
  return kClusters;
}

}  // namespace anyccl::cli
