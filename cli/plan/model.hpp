#pragma once

#include <optional>
#include <string>

namespace anyccl::cli {

/// A mixture of experts in the place of the feed-forward part of most layers.
struct Experts {
  int routed = 0;            ///< Experts of a layer, among which the router chooses.
  int shared = 0;            ///< Experts of a layer that get every token.
  int per_token = 0;         ///< Routed experts that a token goes to.
  int ffn = 0;               ///< Inner width of one expert.
  int dense_layers = 0;      ///< The first layers, which have none.
  int hosts_per_token = 0;   ///< A token goes to at most this number of hosts; 0: to any.
  bool router_bias = false;  ///< One number per expert, to balance the load.
};

/// Multi-head latent attention: queries, keys and values are made from short vectors.
struct LatentAttention {
  int query_rank = 0, kv_rank = 0;
  int nope_dim = 0, rope_dim = 0;  ///< Per head, without and with the position.
  int value_dim = 0;               ///< Per head.
};

/// The shape of a transformer. A count of parameters or FLOPs follows from it and from nothing
/// else.
struct Model {
  std::string name, source;
  int layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0;
  int positions = 0;    ///< Learned ones; 0: none.
  bool gated = false;   ///< The feed-forward part has three matrices, not two.
  bool biased = false;  ///< Linear parts and norms have biases, and there is dropout, as in GPT.
  bool tied = false;    ///< The output head is the embedding table.
  std::optional<Experts> experts;
  std::optional<LatentAttention> latent;

  /// Layers with experts; the others are dense.
  int expert_layers() const { return experts ? layers - experts->dense_layers : 0; }
};

/// Parameters, all layers together: whole numbers, exact up to 2^53.
struct Parameters {
  double total = 0;
  double active = 0;  ///< Those that one token meets.
  double routed = 0;  ///< Those of routed experts, which expert parallelism spreads.
};
Parameters parameters(const Model& model);

/// Which part of the square of positions attention is said to compute.
enum class Attention { full, causal };

/// Floating-point operations of one token, forward; backward takes twice as many. A multiply-add is
/// two.
struct TokenFlops {
  double linear = 0;     ///< All matrices of the layers.
  double attention = 0;  ///< Scores and their products with values.
  double head = 0;

  double layers() const { return linear + attention; }
  double total() const { return layers() + head; }
};
TokenFlops token_flops(const Model& model, int sequence, Attention attention);

/// Bytes that one token leaves behind in the layers for the backward pass, in 2-byte floats and on
/// average over the layers. Korthikanti et al., "Reducing Activation Recomputation in Large
/// Transformer Models", 2022, equation 2, with each tensor counted by the shape of the model.
struct TokenActivations {
  double split = 0;   ///< Per layer, of which each tensor parallel device has its part.
  double whole = 0;   ///< Per layer: inputs of norms and of parallel parts, masks of dropout.
  double scores = 0;  ///< Per layer, split, too: what selective recomputation leaves out.
  double input = 0;   ///< Per layer: what full recomputation keeps.
};
TokenActivations token_activations(const Model& model, int sequence);

/// Numbers of one token's keys and values in a layer, as context parallel devices exchange them.
double key_value_width(const Model& model);

}  // namespace anyccl::cli
