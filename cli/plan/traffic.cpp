#include "plan/traffic.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace anyccl::cli {
namespace {

/// The part of a vector that a device sends in a ring of AllGather or ReduceScatter.
double ring_share(int devices) {
  return (devices - 1.0) / devices;
}

/// The way between devices of a group whose members are `stride` ranks apart.
struct Route {
  bool between = false;
  double GBps = 0, latency_us = 0;
  int hosts = 1;
};

Route route(const Cluster& c, int stride, int size) {
  const int group = stride * size;
  if (c.keeps_together(group)) return {false, c.inside.GBps, c.inside.latency_us, 1};
  // Hosts end at multiples of `part` devices of a group, so one part is the least that a host has.
  // Members on one host share its ways to the network: a ring enters and leaves a host by all of
  // them.
  const int part = std::gcd(group, c.devices_per_host);
  const int members = std::clamp(part / stride, 1, size);
  const int more_hosts = (group - part + c.devices_per_host - 1) / c.devices_per_host;
  return {true, std::min(c.inside.GBps, members * c.between.GBps), c.between.latency_us,
          std::min(size, 1 + more_hosts)};
}

/// What calls take that have as many rounds as a tree is high. `bytes`: of all together.
double time_s(const Route& way, double bytes, double calls, int devices) {
  return bytes / way.GBps / 1e9 + calls * std::ceil(std::log2(devices)) * way.latency_us / 1e6;
}

/// What shows of communication in `parts` parts beside `cover_s` of computing: at least the last
/// part.
double exposed_s(double time, double cover_s, double parts) {
  return std::max(time - cover_s, time / parts);
}

class Counter {
 public:
  Counter(const Model& m, const Cluster& c, const Parallelism& p, const ComputeTime& compute)
      : m_(m), c_(c), p_(p), compute_(compute) {}

  std::vector<Traffic> run() && {
    if (p_.tensor > 1) add_tensor();
    if (p_.context > 1) add_context();
    if (p_.expert > 1) add_experts();
    if (p_.pipeline > 1) add_pipeline();
    if (p_.data * p_.context > 1) add_data();
    return std::move(rows_);
  }

 private:
  double micro_batches() const { return p_.micro_batches(); }
  double layers() const { return p_.stage_layers(m_); }
  /// Layers times micro-batches.
  double passes() const { return layers() * micro_batches(); }

  /// Straight from one device to others, over its own way: a call has one latency.
  double direct_s(bool between, double bytes, double calls) const {
    const LinkSpeed& link = between ? c_.between : c_.inside;
    return bytes / link.GBps / 1e9 + calls * link.latency_us / 1e6;
  }

  /// `row` is of all layers and micro-batches. Computing always hides `hidden_s` of it, and more
  /// only with `overlap`.
  void add_layer_row(Traffic row, double hidden_s) {
    const double shown = row.time_s - hidden_s;
    row.exposed_s = p_.overlap ? exposed_s(shown, compute_.step_s, passes()) : shown;
    row.in_micro_batch = true;
    rows_.push_back(row);
  }

  /// Shoeybi et al., "Megatron-LM", 2019; with sequence parallelism Korthikanti et al., 2022:
  /// inputs are gathered once more in the backward pass, beside the weight gradients. Adds a second
  /// row, for the vocabulary.
  void add_tensor() {
    const Route way = route(c_, 1, p_.tensor);
    const double vector = activation_bytes(m_, p_) * ring_share(p_.tensor);
    const double again = p_.recompute == Recompute::full ? 4 : 0;
    const double shown = (8 + again) * vector, hidden = p_.sequence_parallel ? 2 * vector : 0;
    const double calls = (8 + again + (p_.sequence_parallel ? 2 : 0)) * passes();
    const double bytes = (shown + hidden) * passes();
    add_layer_row({"tensor", p_.sequence_parallel ? "AllGather, ReduceScatter" : "AllReduce", bytes,
                   way.between, time_s(way, bytes, calls, p_.tensor)},
                  hidden * passes() / way.GBps / 1e9);
    const double table = 2 * vector * micro_batches();
    const double table_s = time_s(way, table, 2 * micro_batches(), p_.tensor);
    rows_.push_back({"vocabulary", "AllReduce", table, way.between, table_s, table_s, true});
  }

  /// Keys and values are gathered forward, and their gradients scattered backward.
  void add_context() {
    const Route way = route(c_, p_.tensor, p_.context);
    const double parts = m_.latent ? 1 : std::min(p_.tensor, m_.kv_heads);
    const double vector = static_cast<double>(p_.micro_batch) * p_.sequence * key_value_width(m_) /
                          parts * kActivationBytes;
    const double bytes = 2 * vector * ring_share(p_.context) * passes();
    add_layer_row({"context", "AllGather, ReduceScatter", bytes, way.between,
                   time_s(way, bytes, 2 * passes(), p_.context)},
                  0);
  }

  /// Tokens go to their experts and come back, forward and backward. Between hosts each host gets a
  /// token once and spreads it inside.
  void add_experts() {
    const Route way = route(c_, p_.tensor, p_.expert);
    const Experts& e = *m_.experts;
    const int hosts = e.hosts_per_token > 0 ? std::min(e.hosts_per_token, way.hosts) : way.hosts;
    const double copies = way.between ? std::min(e.per_token, hosts) : e.per_token;
    const double away = ring_share(way.between ? way.hosts : p_.expert);
    const double layers_with = layers() * m_.expert_layers() / m_.layers;
    const double calls = 4 * layers_with * micro_batches();
    const double tokens = p_.micro_batch_tokens() / p_.sequence_parts();
    const double bytes = 2 * expert_bytes(m_, tokens, copies, p_.precision) * away * p_.imbalance *
                         layers_with * micro_batches();
    add_layer_row({"expert", "AllToAll", bytes, way.between, direct_s(way.between, bytes, calls)},
                  0);
  }

  /// Sending goes on beside computing, except when the pipeline fills and drains.
  void add_pipeline() {
    const int stride = p_.tensor * p_.context * p_.data;
    const bool between = stride * p_.pipeline > c_.devices_per_host;
    const double one = activation_bytes(m_, p_) / p_.sequence_parts();
    const double calls = 2 * micro_batches() * p_.schedule.chunks;
    const double fill = 2 * (p_.pipeline - 1.0);
    rows_.push_back({"pipeline", "Send, Recv", one * calls, between,
                     direct_s(between, one * calls, calls), direct_s(between, one * fill, fill)});
  }

  double data_cover_s() const {
    const double all = micro_batches();
    const StageTime& one = compute_.micro_batch;
    const double forward = p_.zero == 0 ? 0 : p_.zero == 3 ? all : 1;
    return forward * one.forward_s + (p_.zero >= 2 ? all : 1) * one.backward_s;
  }

  double data_time_s(double parameters, int stride, int devices, double& bytes, bool& between) {
    if (devices == 1 || parameters == 0) return 0;
    const Route way = route(c_, stride, devices);
    const double sent =
        gradient_traffic_bytes(parameters, devices, p_.zero, p_.gradient_bytes, p_.micro_batches());
    bytes += sent;
    between = between || way.between;
    return time_s(way, sent, 2 * layers(), devices);
  }

  void add_data() {
    const DeviceParameters own = device_parameters(m_, p_);
    const int devices = p_.data * p_.context;
    Traffic row{"data", p_.zero == 0 ? "AllReduce" : "ReduceScatter, AllGather"};
    row.time_s =
        data_time_s(own.dense, p_.tensor, devices, row.bytes, row.between) +
        data_time_s(own.routed, p_.tensor * p_.expert, devices / p_.expert, row.bytes, row.between);
    row.exposed_s = exposed_s(row.time_s, data_cover_s(), layers());
    rows_.push_back(row);
  }

  const Model& m_;
  const Cluster& c_;
  const Parallelism& p_;
  const ComputeTime& compute_;
  std::vector<Traffic> rows_;
};

}  // namespace

std::vector<Traffic> traffic_of(const Model& model, const Cluster& cluster, const Parallelism& p,
                                const ComputeTime& compute) {
  return Counter(model, cluster, p, compute).run();
}

double activation_bytes(const Model& model, const Parallelism& p) {
  return p.micro_batch_tokens() * model.hidden * kActivationBytes;
}

double expert_bytes(const Model& model, double tokens, double copies, Precision precision) {
  const double dispatched = precision == Precision::fp8 ? 1 : kActivationBytes;
  return tokens * copies * model.hidden * (dispatched + kActivationBytes);
}

DeviceParameters device_parameters(const Model& model, const Parallelism& p) {
  const Parameters all = parameters(model);
  const double parts = static_cast<double>(p.tensor) * p.pipeline;
  return {(all.total - all.routed) / parts, all.routed / parts / p.expert};
}

double gradient_traffic_bytes(double parameters, int devices, int zero, int gradient_bytes,
                              int micro_batches) {
  const double part = ring_share(devices) * parameters;
  if (zero == 0) return 2 * part * gradient_bytes;
  const double reductions = zero >= 2 ? micro_batches : 1;
  const double gathers = zero == 3 ? 2.0 * micro_batches : 1;
  return part * (reductions * gradient_bytes + gathers * kWeightBytes);
}

}  // namespace anyccl::cli
