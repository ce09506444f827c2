#include "plan/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/whole_file.hpp"
#include "plan/fields.hpp"
#include "plan/presets.hpp"

namespace anyccl::cli {
namespace {

using Need = Fields::Need;

void read_experts(Fields& f, Experts& e) {
  f.read_whole("routed", e.routed, 2);
  f.read_whole("shared", e.shared, 0, Need::optional);
  f.read_whole("per_token", e.per_token, 1);
  f.read_whole("ffn", e.ffn, 1);
  f.read_whole("dense_layers", e.dense_layers, 0, Need::optional);
  f.read_whole("hosts_per_token", e.hosts_per_token, 0, Need::optional);
  f.read_flag("router_bias", e.router_bias);
  if (e.per_token > e.routed) f.fail("'per_token' is above 'routed'");
}

void read_latent(Fields& f, LatentAttention& l) {
  f.read_whole("query_rank", l.query_rank, 1);
  f.read_whole("kv_rank", l.kv_rank, 1);
  f.read_whole("nope_dim", l.nope_dim, 1);
  f.read_whole("rope_dim", l.rope_dim, 1);
  f.read_whole("value_dim", l.value_dim, 1);
}

void read(Fields& f, Model& m) {
  f.need_constant("format", "anyccl.model/1");
  f.read_name("name", m.name);
  f.read_text("source", m.source);
  f.read_whole("layers", m.layers, 1);
  f.read_whole("hidden", m.hidden, 1);
  f.read_whole("ffn", m.ffn, 1);
  f.read_whole("heads", m.heads, 1);
  m.kv_heads = m.heads;
  f.read_whole("kv_heads", m.kv_heads, 1, Need::optional);
  m.head_dim = m.hidden / std::max(1, m.heads);
  f.read_whole("head_dim", m.head_dim, 1, Need::optional);
  f.read_whole("vocab", m.vocab, 1);
  f.read_whole("positions", m.positions, 0, Need::optional);
  f.read_flag("gated", m.gated);
  f.read_flag("biased", m.biased);
  f.read_flag("tied", m.tied);
  f.read_object("moe", Need::optional,
                [&](Fields& inner) { read_experts(inner, m.experts.emplace()); });
  f.read_object("mla", Need::optional,
                [&](Fields& inner) { read_latent(inner, m.latent.emplace()); });
  if (m.experts && m.experts->dense_layers >= m.layers)
    f.fail("moe: 'dense_layers' must be below 'layers'");
  if (m.head_dim == 0) f.fail("'heads' is above 'hidden', so 'head_dim' is needed");
  if (m.kv_heads > 0 && m.heads % m.kv_heads != 0) f.fail("'kv_heads' must divide 'heads'");
}

constexpr double kMostRate = 1e9;

void read_link(Fields& f, LinkSpeed& link) {
  f.read_real("GBps", link.GBps, kMostRate);
  f.read_real("latency_us", link.latency_us, kMostRate);
}

void read_device(Fields& f, Device& d) {
  f.read_name("name", d.name);
  f.read_real("bf16_TFLOPs", d.bf16_TFLOPs, kMostRate);
  f.read_real("fp8_TFLOPs", d.fp8_TFLOPs, kMostRate, Need::optional);
  f.read_real("memory_GB", d.memory_GB, kMostRate);
  f.read_real("memory_GBps", d.memory_GBps, kMostRate);
  f.read_real("best_efficiency", d.best_efficiency, 1);
  f.read_real("half_hidden", d.half_hidden, kMostRate);
}

void read(Fields& f, Cluster& c) {
  f.need_constant("format", "anyccl.cluster/1");
  f.read_name("name", c.name);
  f.read_text("source", c.source);
  f.read_whole("devices", c.devices, 1);
  f.read_whole("devices_per_host", c.devices_per_host, 1);
  f.read_object("device", Need::required, [&](Fields& inner) { read_device(inner, c.device); });
  f.read_object("inside", Need::required, [&](Fields& inner) { read_link(inner, c.inside); });
  f.read_object("between", Need::required, [&](Fields& inner) { read_link(inner, c.between); });
}

template <typename Shape>
Result<Shape> parse(const std::string& text, const std::string& where) {
  const Fields::Json json = Fields::Json::parse(text, nullptr, false);
  if (json.is_discarded()) return error(Code::invalid_argument, "{} is no JSON", where);
  Shape shape;
  Fields fields(json, where);
  read(fields, shape);
  ANYCCL_CHECK(fields.status());
  return shape;
}

/// Parses the preset of that name, or else the file. `what`: what errors call it.
template <typename Shape>
Result<Shape> find(const std::string& name, std::span<const Preset> presets, const char* what) {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets) {
    if (preset.name == name) return parse<Shape>(std::string(preset.json), name);
    names.push_back(preset.name);
  }
  const Result<std::string> text = read_whole_file(name);
  if (!text.ok())
    return error(Code::invalid_argument, "{} '{}' is no file that can be read; the presets are {}",
                 what, name, fmt::join(names, ", "));
  return parse<Shape>(*text, name);
}

}  // namespace

Result<Model> parse_model(const std::string& text, const std::string& where) {
  return parse<Model>(text, where);
}

Result<Cluster> parse_cluster(const std::string& text, const std::string& where) {
  return parse<Cluster>(text, where);
}

Result<Model> find_model(const std::string& name) {
  return find<Model>(name, model_presets(), "the model");
}

Result<Cluster> find_cluster(const std::string& name) {
  return find<Cluster>(name, cluster_presets(), "the cluster");
}

}  // namespace anyccl::cli
