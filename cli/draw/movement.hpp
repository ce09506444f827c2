#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "algorithm/verify/terms.hpp"

namespace anyccl::cli {

/// The most columns that are still a picture.
inline constexpr int kMostDrawnRanks = 32;

/// A chunk somewhere on its way: its number, and the ranks whose contributions are in it.
struct Chunk {
  Origin number = 0;
  std::bitset<verify::kMaxRanks> ranks = {};
  bool operator==(const Chunk&) const = default;
};

/// An action of a rank that gets a mark: it receives, or adds up, or both.
struct Action {
  Rank rank{0};
  std::uint32_t round = 0;       ///< From 1; 0: before anything was sent.
  std::string name = {};         ///< "recv_reduce_send"
  std::vector<Chunk> sums = {};  ///< The chunks it added up; none if it only receives.
};

struct Message {
  Rank from{0}, to{0};
  std::uint32_t round = 0;  ///< The round of sending; it is read in the action's, or later.
  std::size_t action = 0;   ///< The one that reads it.
  std::vector<Chunk> chunks = {};
  std::uint32_t number = 0;  ///< Among those from `from` to `to`, in the order of sending, from 0.
};

/// All messages of a collective, without a picture's coordinates.
struct Movement {
  Shape shape;
  std::string algorithm;  ///< "all_reduce/ring"
  Cost cost;              ///< As counted.
  Combine combine = Combine::none;
  std::vector<std::vector<Chunk>> before = {}, after = {};  ///< Input and output of each rank.
  std::vector<Message> messages = {};                       ///< By round, sender and receiver.
  std::vector<Action> actions = {};                         ///< By rank, in its order.
};

/// Runs the algorithm on symbols, as it is lowered to wide steps. Errors: invalid_argument for a
/// number of ranks that cannot be drawn, a root that is not one of them, and a shape that the
/// algorithm does not support; simulate()'s errors for a wrong algorithm.
Result<Movement> movement_of(const Algorithm& algorithm, const Shape& shape);

/// "all_reduce/ring, 4 ranks"
std::string title(const Movement& movement);
/// "6 rounds; the busiest rank sends 6 chunks, 1.50 times its input; 3 roundings"
std::string caption_of(const Movement& movement);
/// "0+1+3"
std::string contributors(const Chunk& chunk);

}  // namespace anyccl::cli
