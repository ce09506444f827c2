#pragma once
// Algorithms as text: calls of Builder, listed for each number of ranks. docs/own-algorithms.md has
// the form.

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/status.hpp"

namespace anyccl {

/// The most that a file may ask for.
struct FormLimits {
  static constexpr std::size_t kBytes = std::size_t{64} << 20;  ///< Its text.
  static constexpr int kRanks = 65536;
  static constexpr std::size_t kSteps = 65536;           ///< Per rank.
  static constexpr std::size_t kPeers = 1024;            ///< Per step.
  static constexpr std::uint32_t kChunks = 1U << 20;     ///< Per space of a rank.
  static constexpr std::uint64_t kOrigins = 1ULL << 24;  ///< Chunks of the collective's vector.
  static constexpr std::size_t kNameLength = 64, kPlaceLength = 256;
};

/// The calls of one rank's Builder, in their order.
struct WrittenRank {
  std::vector<Origin> scratch = {};  ///< For each scratch chunk, the origin it has room for.
  std::vector<Step> steps = {};      ///< Without Step::after, which Builder finds.
  std::vector<std::string_view> places = {};  ///< As Schedule::places.
};

/// The calls of all ranks' Builders, for one number of ranks and root 0.
struct WrittenSize {
  int ranks = 1;
  std::uint32_t chunks_per_block = 1;
  /// The host of each rank, numbered in the order of their first ranks; empty: any hosts.
  std::vector<int> host_of = {};
  std::vector<WrittenRank> each = {};
};

struct WrittenAlgorithm {
  std::string name = {}, about = {};
  Collective collective = Collective::all_reduce;
  std::vector<WrittenSize> sizes = {};
  /// What WrittenRank::places are in.
  std::shared_ptr<std::deque<std::string>> place_texts = {};
};

/// Hosts numbered in the order of their first ranks. Of none: one host for all.
std::vector<int> renumber_hosts(const std::vector<int>& host_of, int ranks);

/// The text as an algorithm, each slice and peer of which exists; whether it is right is for
/// check_shape(). `file`: for messages. Errors: invalid_argument, naming the place in the text:
/// "mine.json: sizes[0].steps[2][7]: ...".
Result<WrittenAlgorithm> parse_algorithm(std::string_view text, const std::string& file);

/// An algorithm as it is for these shapes, which it supports. Root and in_place do not matter.
WrittenAlgorithm written_form(const Algorithm& algorithm, std::span<const Shape> shapes);

/// The text; parse_algorithm() gives the same again. A line for each rank. `bare`: without `about`
/// and places, which change nothing.
std::string to_text(const WrittenAlgorithm& algorithm, bool bare = false);
/// "o3:2+4": two chunks from output chunk 3 on; for the next peer, those four further on.
std::string slice_text(const Slice& slice);

}  // namespace anyccl
