#include "combinations.hpp"

#include "base/config.hpp"

namespace anyccl::cli {

namespace {

/// Whether all it publishes is parts of one vector, or of one block at a time: so much fits a line,
/// if it is small.
bool fits_lines(const Algorithm& algorithm) {
  Shape shape{.collective = algorithm.collective, .size = 4};
  while (!algorithm.supports(shape)) ++shape.size;
  for (const Schedule& schedule : build_all(algorithm, shape)) {
    const Contract& contract = schedule.contract;
    if (contract.private_sizes()) return false;  // a line has no room for the size
    for (const Step& step : schedule.steps) {
      if (step.op != Op::send) continue;
      const std::size_t pieces = step.src.stride == 0 ? 1 : step.peers.size();
      const bool blocks = contract.origins() > contract.parts();
      if (blocks && step.src.count * pieces > contract.parts()) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Combination> all_combinations() {
  std::vector<Combination> all;
  for (const Algorithm* algorithm : all_algorithms())
    for (const std::string_view protocol : kProtocolNames)
      if (protocol == "Simple" || fits_lines(*algorithm)) all.push_back({algorithm, protocol});
  return all;
}

}  // namespace anyccl::cli
