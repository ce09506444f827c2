#include "plan/model.hpp"

namespace anyccl::cli {
namespace {

/// Weights of matrices, and the rest: norms, biases, router biases.
struct Weights {
  double matrices = 0, rest = 0;
};

Weights operator+(Weights a, Weights b) {
  return {a.matrices + b.matrices, a.rest + b.rest};
}
Weights operator*(double times, Weights w) {
  return {times * w.matrices, times * w.rest};
}

Weights attention_weights(const Model& m) {
  const double h = m.hidden, a = m.heads;
  if (m.latent) {
    const LatentAttention& l = *m.latent;
    const double q = l.query_rank, kv = l.kv_rank;
    return {h * q + q * a * (l.nope_dim + l.rope_dim) + h * (kv + l.rope_dim) +
                kv * a * (l.nope_dim + l.value_dim) + a * l.value_dim * h,
            q + kv};
  }
  const double d = m.head_dim, queries = a * d, keys = m.kv_heads * d;
  return {h * queries + 2 * h * keys + queries * h, m.biased ? queries + 2 * keys + h : 0};
}

Weights ffn_weights(const Model& m, double width) {
  const double h = m.hidden;
  return {(m.gated ? 3 : 2) * h * width, m.biased ? width + h : 0};
}

Weights norm_weights(const Model& m) {
  return {0, (m.biased ? 2.0 : 1.0) * m.hidden};
}

Weights router_weights(const Model& m) {
  const double routed = m.experts->routed;
  return {m.hidden * routed, m.experts->router_bias ? routed : 0};
}

/// All layers, with this number of routed experts.
Weights layer_weights(const Model& m, int routed) {
  Weights sum = m.layers * (attention_weights(m) + 2 * norm_weights(m)) +
                (m.layers - m.expert_layers()) * ffn_weights(m, m.ffn);
  if (m.experts)
    sum = sum + m.expert_layers() * (router_weights(m) +
                                     (routed + m.experts->shared) * ffn_weights(m, m.experts->ffn));
  return sum;
}

Weights active_weights(const Model& m) {
  return layer_weights(m, m.experts ? m.experts->per_token : 0);
}

double sum(Weights w) {
  return w.matrices + w.rest;
}

/// Products of a query with a key and of a score with a value, of all heads.
double attention_width(const Model& m) {
  if (m.latent)
    return static_cast<double>(m.heads) *
           (m.latent->nope_dim + m.latent->rope_dim + m.latent->value_dim);
  return 2.0 * m.heads * m.head_dim;
}

/// Bytes per inner number of a feed-forward part: input and output of the activation function, and
/// of a gated one the other factor, too.
double ffn_bytes(const Model& m) {
  return m.gated ? 6.0 : 4.0;
}

/// Queries, keys, values and the input of the output matrix.
double attention_bytes(const Model& m) {
  if (m.latent) {
    const LatentAttention& l = *m.latent;
    return 2.0 * (l.query_rank + l.kv_rank + l.rope_dim) +
           4.0 * m.heads * (l.nope_dim + l.rope_dim + l.value_dim);
  }
  return 4.0 * m.head_dim * (m.heads + m.kv_heads);
}

}  // namespace

Parameters parameters(const Model& m) {
  const double h = m.hidden, table = m.vocab * h;
  const double around = (m.tied ? 1 : 2) * table + m.positions * h + sum(norm_weights(m));
  Parameters p;
  p.total = sum(layer_weights(m, m.experts ? m.experts->routed : 0)) + around;
  p.active = sum(active_weights(m)) + around;
  if (m.experts)
    p.routed = 1.0 * m.expert_layers() * m.experts->routed * sum(ffn_weights(m, m.experts->ffn));
  return p;
}

TokenFlops token_flops(const Model& m, int sequence, Attention attention) {
  const double seen = attention == Attention::causal ? sequence / 2.0 : sequence;
  return {2.0 * active_weights(m).matrices, 2.0 * m.layers * seen * attention_width(m),
          2.0 * m.vocab * m.hidden};
}

TokenActivations token_activations(const Model& m, int sequence) {
  const double experts = static_cast<double>(m.expert_layers()) / m.layers;
  double ffn = (1 - experts) * m.ffn, copies = 0;
  if (m.experts) {
    ffn += experts * (m.experts->per_token + m.experts->shared) * m.experts->ffn;
    copies = experts * m.experts->per_token * 2.0 * m.hidden;  // what each expert was sent
  }
  return {attention_bytes(m) + ffn_bytes(m) * ffn + copies, (m.biased ? 10.0 : 8.0) * m.hidden,
          5.0 * m.heads * sequence, 2.0 * m.hidden};
}

double key_value_width(const Model& m) {
  return m.latent ? m.latent->kv_rank + m.latent->rope_dim : 2.0 * m.kv_heads * m.head_dim;
}

}  // namespace anyccl::cli
