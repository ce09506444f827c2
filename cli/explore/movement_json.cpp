#include <fmt/format.h>

#include "explore/variants.hpp"

namespace anyccl::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Without leading zeros.
std::string hexadecimal(const std::bitset<verify::kMaxRanks>& ranks) {
  std::string text;
  for (std::size_t digit = ranks.size() / 4; digit-- > 0;) {
    unsigned value = 0;
    for (std::size_t bit = 4; bit-- > 0;) value = 2 * value + (ranks.test(4 * digit + bit) ? 1 : 0);
    if (value != 0 || !text.empty()) text += fmt::format("{:x}", value);
  }
  return text;
}

class MovementPacker {
 public:
  explicit MovementPacker(ExplorerPools& pools) : pools_(pools) {}

  /// The chunks that each rank has.
  std::string memory(const std::vector<std::vector<Chunk>>& ranks) {
    PackedNumbers to;
    for (const std::vector<Chunk>& chunks : ranks) add(chunks, to);
    return to.text();
  }

  std::string messages(const std::vector<Message>& messages) {
    PackedNumbers to;
    for (const Message& m : messages) {
      to.add(uindex(m.from)).add(uindex(m.to)).add(m.round).add(m.action);
      add(m.chunks, to);
    }
    return to.text();
  }

  std::string actions(const std::vector<Action>& actions) {
    PackedNumbers to;
    for (const Action& a : actions) {
      to.add(uindex(a.rank)).add(a.round).add(pools_.names.number_of(a.name));
      add(a.sums, to);
    }
    return to.text();
  }

 private:
  /// The number of runs; of each run its first number, length and ranks.
  void add(const std::vector<Chunk>& chunks, PackedNumbers& to) {
    PackedNumbers runs;
    std::uint64_t count = 0;
    for (std::size_t i = 0, next = 0; i < chunks.size(); i = next, ++count) {
      next = i + 1;
      while (next < chunks.size() && chunks[next].number == chunks[next - 1].number + 1 &&
             chunks[next].ranks == chunks[i].ranks)
        ++next;
      runs.add(chunks[i].number).add(next - i);
      runs.add(pools_.ranks.number_of(hexadecimal(chunks[i].ranks)));
    }
    to.add(count).append(runs);
  }

  ExplorerPools& pools_;
};

}  // namespace

Json movement_json(const Movement& m, std::uint32_t chunks_per_block, ExplorerPools& pools) {
  MovementPacker pack(pools);
  return {{"ranks", m.shape.size},
          {"root", index(m.shape.root)},
          {"cost", {m.cost.rounds, m.cost.sent, m.cost.of, m.cost.roundings}},
          {"chunksPerBlock", chunks_per_block},
          {"before", pack.memory(m.before)},
          {"after", pack.memory(m.after)},
          {"messages", pack.messages(m.messages)},
          {"actions", pack.actions(m.actions)}};
}

}  // namespace anyccl::cli
