// Algorithms that users write. A text that is read must be safe to build, to print and to check.

#include "algorithm/loaded/loaded_algorithm.hpp"
#include "algorithm/schedule/print.hpp"
#include "input.hpp"

namespace anyccl::fuzz {
namespace {

/// So that a check takes some milliseconds at most.
bool is_small(const WrittenSize& size) {
  std::size_t steps = 0, chunks = size.chunks_per_block;
  for (const WrittenRank& rank : size.each) {
    steps += rank.steps.size();
    chunks += rank.scratch.size();
    for (const Step& step : rank.steps) chunks += step.peers.size() * step.src.first;
  }
  return size.ranks <= 4 && steps <= 64 && chunks <= 256;
}

}  // namespace

void run(Input input) {
  auto text = parse_algorithm(input.text(), "file");
  if (!text.ok()) return;
  const std::string again = to_text(*text);
  const LoadedAlgorithm loaded(*std::move(text), "file");
  if (!parse_algorithm(again, "file").ok()) __builtin_trap();
  for (const WrittenSize& size : loaded.text().sizes) {
    if (!is_small(size)) continue;
    const Shape shape{loaded.text().collective, size.ranks, Rank{0}, false, size.host_of};
    static_cast<void>(loaded.check(shape, 16));
    for (const Schedule& schedule : build_all(loaded.algorithm(), shape))
      static_cast<void>(to_text(schedule));
  }
}

}  // namespace anyccl::fuzz
