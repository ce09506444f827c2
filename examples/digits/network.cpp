#include "network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace digits {
namespace {

constexpr std::size_t kHidden = Network::kHidden;

/// The four parts of the parameter vector, or of the vector of gradients.
template <typename T>
struct Parts {
  explicit Parts(std::span<T> all)
      : w1(all.subspan(0, kHidden * kPixels)),
        b1(all.subspan(w1.size(), kHidden)),
        w2(all.subspan(w1.size() + kHidden, kClasses * kHidden)),
        b2(all.subspan(w1.size() + kHidden + w2.size(), kClasses)) {}
  std::span<T> w1, b1, w2, b2;
};

std::span<const float, kPixels> pixels_of(const Images& set, std::size_t sample) {
  return std::span<const float, kPixels>(set.images.data() + sample * kPixels, kPixels);
}

}  // namespace

struct Network::Activations {
  std::array<float, kHidden> hidden;
  std::array<float, kClasses> scores;
};

void Network::initialise(std::uint32_t seed) {
  std::mt19937 bits(seed);
  const auto uniform = [&bits](float limit) {  // in [-limit, limit)
    return (static_cast<float>(bits() >> 8) * 0x1p-23F - 1.0F) * limit;
  };
  const Parts<float> parts{std::span(weights_)};
  for (float& w : parts.w1) w = uniform(std::sqrt(6.0F / kPixels));
  for (float& w : parts.w2) w = uniform(std::sqrt(6.0F / kHidden));
}

Network::Activations Network::forward(std::span<const float, kPixels> pixels) const {
  const Parts<const float> parts{std::span(weights_)};
  Activations result{};
  for (std::size_t h = 0; h < kHidden; ++h) {
    float sum = parts.b1[h];
    for (std::size_t p = 0; p < kPixels; ++p) sum += parts.w1[h * kPixels + p] * pixels[p];
    result.hidden[h] = std::max(sum, 0.0F);
  }
  for (std::size_t c = 0; c < kClasses; ++c) {
    float sum = parts.b2[c];
    for (std::size_t h = 0; h < kHidden; ++h) sum += parts.w2[c * kHidden + h] * result.hidden[h];
    result.scores[c] = sum;
  }
  return result;
}

float Network::backward(const Images& set, std::span<const std::size_t> samples,
                        std::span<float> gradients) const {
  const Parts<const float> parts{std::span(weights_)};
  const Parts<float> grad(gradients);
  float loss = 0;
  for (const std::size_t sample : samples) {
    const auto pixels = pixels_of(set, sample);
    const Activations a = forward(pixels);
    const auto label = static_cast<std::size_t>(set.labels[sample]);
    const float highest = *std::max_element(a.scores.begin(), a.scores.end());
    float total = 0;
    for (const float score : a.scores) total += std::exp(score - highest);
    loss += std::log(total) + highest - a.scores[label];

    std::array<float, kHidden> back{};  // d loss / d hidden
    for (std::size_t c = 0; c < kClasses; ++c) {
      const float d = std::exp(a.scores[c] - highest) / total - (c == label ? 1.0F : 0.0F);
      grad.b2[c] += d;
      for (std::size_t h = 0; h < kHidden; ++h) {
        grad.w2[c * kHidden + h] += d * a.hidden[h];
        back[h] += d * parts.w2[c * kHidden + h];
      }
    }
    for (std::size_t h = 0; h < kHidden; ++h) {
      if (a.hidden[h] <= 0) continue;  // ReLU passes nothing back
      grad.b1[h] += back[h];
      for (std::size_t p = 0; p < kPixels; ++p) grad.w1[h * kPixels + p] += back[h] * pixels[p];
    }
  }
  return loss;
}

void Network::step(std::span<const float> gradients, std::size_t batch, float rate,
                   float momentum) {
  const float scale = 1.0F / static_cast<float>(batch);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    velocity_[i] = momentum * velocity_[i] + gradients[i] * scale;
    weights_[i] -= rate * velocity_[i];
  }
}

int Network::classify(const Images& set, std::size_t sample) const {
  const Activations a = forward(pixels_of(set, sample));
  return static_cast<int>(std::max_element(a.scores.begin(), a.scores.end()) - a.scores.begin());
}

}  // namespace digits
