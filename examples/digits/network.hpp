#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data.hpp"

namespace digits {

/// Two layers: 64 pixels -> kHidden ReLU units -> 10 digits, trained with softmax cross-entropy.
///
/// All parameters are in one vector (first layer's weights and biases, then the second's), and so
/// are their gradients: data-parallel training sums that vector over the ranks, in one call.
class Network {
 public:
  static constexpr std::size_t kHidden = 64;
  static constexpr std::size_t kParameters =
      kHidden * kPixels + kHidden + kClasses * kHidden + kClasses;

  /// All parameters are 0 until they are initialised or received from another rank.
  Network() : weights_(kParameters), velocity_(kParameters) {}

  /// Random weights that depend on `seed` alone.
  void initialise(std::uint32_t seed);

  std::vector<float>& weights() { return weights_; }
  const std::vector<float>& weights() const { return weights_; }

  /// Adds the gradient of the summed loss over `samples` of `set` to `gradients`; returns that
  /// loss.
  float backward(const Images& set, std::span<const std::size_t> samples,
                 std::span<float> gradients) const;

  /// One step of gradient descent with momentum along gradients / batch.
  void step(std::span<const float> gradients, std::size_t batch, float rate, float momentum);

  /// The digit that image `sample` of `set` shows, as far as the network can tell.
  int classify(const Images& set, std::size_t sample) const;

 private:
  struct Activations;
  Activations forward(std::span<const float, kPixels> pixels) const;

  std::vector<float> weights_;
  std::vector<float> velocity_;
};

}  // namespace digits
