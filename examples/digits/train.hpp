#pragma once

#include <anyccl/status.hpp>
#include <functional>
#include <vector>

#include "data.hpp"
#include "network.hpp"

namespace digits {

struct Recipe {
  int epochs = 30;
  std::size_t batch = 48;  // images per step, over all ranks together
  float rate = 0.05F;
  float momentum = 0.9F;
  std::uint32_t seed = 1;  // of the order of the images, which is the same on all ranks
};

/// The part of each batch that this process computes: `rank` of `size` nearly equal ones.
struct Share {
  int rank = 0;
  int size = 1;
};

/// Adds up the vector over all processes, in place.
using Sum = std::function<anyccl::Status(std::vector<float>&)>;
/// Gets the number of each finished epoch, from 0, and its mean loss per image.
using Report = std::function<void(int epoch, float loss)>;

/// Trains `network` by stochastic gradient descent and returns the mean loss of each epoch.
///
/// Each process computes the gradients of its share of a batch; `sum` adds them up; all processes
/// take the same step. With Share{} and a `sum` that does nothing this is training in one process.
/// Errors: those of `sum`.
anyccl::Result<std::vector<float>> train(Network& network, const Images& images,
                                         const Recipe& recipe, Share share, const Sum& sum,
                                         const Report& report);

}  // namespace digits
