// A payload of a sparse vector, as a peer sends it.

#include "platform/reduce/sparse.hpp"

#include <algorithm>
#include <vector>

#include "input.hpp"
#include "platform/reduce/isa.hpp"

namespace anyccl::fuzz {

void run(Input input) {
  const std::size_t count = input.take<std::uint32_t>() % 140000;
  const auto payload = input.rest();
  const auto kernels = best_kernels();
  if (!kernels.ok()) std::abort();
  std::vector<float> into(count);  // without room to spare
  const Status added = sparse_add((*kernels)->sparse, payload, {into.data(), count});
  const auto is_zero = [](float x) { return x == 0; };
  if (!added.ok() && !std::all_of(into.begin(), into.end(), is_zero)) std::abort();
}

}  // namespace anyccl::fuzz
