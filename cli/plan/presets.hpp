#pragma once

#include <span>
#include <string_view>

namespace anyccl::cli {

/// A model or cluster that is known by name, as the file that would describe it.
struct Preset {
  std::string_view name, json;
};
std::span<const Preset> model_presets();
std::span<const Preset> cluster_presets();

}  // namespace anyccl::cli
