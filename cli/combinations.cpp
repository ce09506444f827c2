#include "combinations.hpp"

#include "algorithm/loaded/loaded_algorithm.hpp"
#include "framework/tuning/protocol_rules.hpp"

namespace anyccl::cli {

namespace {

/// One that it supports.
Shape shape_of(const Algorithm& algorithm) {
  Shape shape{.collective = algorithm.collective, .size = 4};
  if (algorithm.loaded != nullptr) {
    const WrittenSize& first = algorithm.loaded->text().sizes[0];
    shape.size = first.ranks;
    shape.host_of = first.host_of;
  }
  while (!algorithm.supports(shape)) ++shape.size;
  return shape;
}

/// A line takes parts of one vector, or of one block at a time; a slot takes several blocks.
/// Neither has room for a size.
bool fits_protocol(const Algorithm& algorithm, std::string_view protocol) {
  if (protocol == "Simple") return true;
  for (const Schedule& schedule : build_all(algorithm, shape_of(algorithm))) {
    const Contract& contract = schedule.contract;
    if (contract.private_sizes()) return false;
    if (protocol == "LL128") continue;
    for (const Step& step : schedule.steps) {
      if (step.op != Op::send) continue;
      const std::size_t pieces = step.src.stride == 0 ? 1 : step.peers.size();
      const bool blocks = contract.origins() > contract.chunks_per_block();
      if (blocks && step.src.count * pieces > contract.chunks_per_block()) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Combination> all_combinations() {
  std::vector<Combination> all;
  for (const Algorithm* algorithm : all_algorithms())
    for (const std::string_view protocol : kProtocolNames)
      if (fits_protocol(*algorithm, protocol)) all.push_back({algorithm, protocol});
  return all;
}

}  // namespace anyccl::cli
