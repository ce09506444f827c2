#include "train.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <span>
#include <utility>

namespace digits {
namespace {

// Not std::shuffle: its order may differ between standard libraries, and all ranks must agree.
void shuffle(std::vector<std::size_t>& order, std::mt19937& bits) {
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[bits() % left]);
  }
}

std::span<const std::size_t> part(std::span<const std::size_t> batch, Share share) {
  const auto rank = static_cast<std::size_t>(share.rank);
  const auto size = static_cast<std::size_t>(share.size);
  const std::size_t first = batch.size() * rank / size;
  return batch.subspan(first, batch.size() * (rank + 1) / size - first);
}

}  // namespace

anyccl::Result<std::vector<float>> train(Network& network, const Images& images,
                                         const Recipe& recipe, Share share, const Sum& sum,
                                         const Report& report) {
  std::vector<float> losses;
  std::vector<std::size_t> order(images.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 bits(recipe.seed);
  // The loss travels behind the gradients: one call per step instead of two.
  std::vector<float> sums(Network::kParameters + 1);
  const std::span<float> gradients = std::span(sums).first(Network::kParameters);

  for (int epoch = 0; epoch < recipe.epochs; ++epoch) {
    shuffle(order, bits);
    float loss = 0;
    for (std::size_t first = 0; first < order.size(); first += recipe.batch) {
      const auto batch = std::span<const std::size_t>(order).subspan(
          first, std::min(recipe.batch, order.size() - first));
      std::fill(sums.begin(), sums.end(), 0.0F);
      sums.back() = network.backward(images, part(batch, share), gradients);
      const anyccl::Status summed = sum(sums);
      if (!summed.ok()) return summed;
      network.step(gradients, batch.size(), recipe.rate, recipe.momentum);
      loss += sums.back();
    }
    losses.push_back(loss / static_cast<float>(order.size()));
    report(epoch, losses.back());
  }
  return losses;
}

}  // namespace digits
