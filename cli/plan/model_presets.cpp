#include "plan/presets.hpp"

namespace anyccl::cli {
namespace {

constexpr Preset kModels[] = {
    {"llama3-8b", R"({
  "format": "anyccl.model/1", "name": "llama3-8b", "source": "Llama team, The Llama 3 Herd of Models, 2024, table 3",
  "layers": 32, "hidden": 4096, "ffn": 14336, "heads": 32, "kv_heads": 8, "vocab": 128256, "gated": true})"},
    {"llama3-70b", R"({
  "format": "anyccl.model/1", "name": "llama3-70b", "source": "Llama team, The Llama 3 Herd of Models, 2024, table 3",
  "layers": 80, "hidden": 8192, "ffn": 28672, "heads": 64, "kv_heads": 8, "vocab": 128256, "gated": true})"},
    {"llama3-405b", R"({
  "format": "anyccl.model/1", "name": "llama3-405b", "source": "Llama team, The Llama 3 Herd of Models, 2024, table 3",
  "layers": 126, "hidden": 16384, "ffn": 53248, "heads": 128, "kv_heads": 8, "vocab": 128256, "gated": true})"},
    {"gpt3-175b", R"({
  "format": "anyccl.model/1", "name": "gpt3-175b", "source": "Brown et al., Language Models are Few-Shot Learners, 2020, table 2.1",
  "layers": 96, "hidden": 12288, "ffn": 49152, "heads": 96, "vocab": 50257, "positions": 2048, "biased": true, "tied": true})"},
    {"mixtral-8x7b", R"({
  "format": "anyccl.model/1", "name": "mixtral-8x7b", "source": "Jiang et al., Mixtral of Experts, 2024, table 1",
  "layers": 32, "hidden": 4096, "ffn": 14336, "heads": 32, "kv_heads": 8, "vocab": 32000, "gated": true,
  "moe": {"routed": 8, "per_token": 2, "ffn": 14336}})"},
    {"deepseek-v3", R"({
  "format": "anyccl.model/1", "name": "deepseek-v3", "source": "DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 4.2; without the layer for multi-token prediction",
  "layers": 61, "hidden": 7168, "ffn": 18432, "heads": 128, "vocab": 129280, "gated": true,
  "moe": {"routed": 256, "shared": 1, "per_token": 8, "ffn": 2048, "dense_layers": 3, "hosts_per_token": 4, "router_bias": true},
  "mla": {"query_rank": 1536, "kv_rank": 512, "nope_dim": 128, "rope_dim": 64, "value_dim": 128}})"},
};

}  // namespace

std::span<const Preset> model_presets() {
  return kModels;
}

}  // namespace anyccl::cli
