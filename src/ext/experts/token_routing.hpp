#pragma once
// The counts and places of rows in a layer of experts are computed here. The C interface beside it
// moves the rows.

#include <cstddef>
#include <span>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl {

/// Where the tokens of a mixture-of-experts layer go: counts and places, without data. Rank r of n
/// has the experts / n experts from r * experts / n on. A token that goes to k experts is k rows.
class TokenRouting {
 public:
  struct Wanted {
    std::size_t tokens = 0;
    int choices = 0;           ///< Per token.
    int experts = 0;           ///< On all ranks together.
    std::size_t capacity = 0;  ///< The most rows of one rank that an expert takes; 0: all.
    bool padded = false;       ///< Every expert has `capacity` rows of each rank.
  };

  /// `expert_of`[token * choices + k]: the expert, or -1. Errors: invalid_argument, naming the
  /// token.
  static Result<TokenRouting> make(const Wanted& wanted, std::span<const int> expert_of, int ranks);
  /// `counts`[rank * local_experts() + e]: the rows that `rank` sends to expert e of this rank, as
  /// it says.
  /// Errors: invalid_usage, naming the rank, when they are more than there is room for.
  Status set_received(std::span<const std::size_t> counts);

  int ranks() const { return ranks_; }
  int local_experts() const { return wanted_.experts / ranks_; }
  /// The rows that this rank sends to each expert.
  const std::vector<std::size_t>& sent() const { return sent_; }
  /// The place among the rows that are sent, by expert; kDropped.
  const std::vector<std::size_t>& place_of() const { return place_of_; }
  static constexpr std::size_t kDropped = ~std::size_t{0};

  // By rank, in rows of the buffers that are exchanged:
  std::vector<std::size_t> sent_to() const;
  std::vector<std::size_t> received_from() const;

  /// Rows of one expert of this rank from one rank: where they are as they arrive, and where they
  /// belong.
  struct Block {
    std::size_t arrives, belongs, rows;
  };
  std::vector<Block> blocks() const;
  std::size_t rows() const;                          ///< Those of all experts of this rank.
  std::vector<std::size_t> rows_of_experts() const;  ///< Without padding.
  std::size_t dropped() const { return dropped_; }
  const Wanted& wanted() const { return wanted_; }

 private:
  /// The most rows of one expert from one rank: their sum over all of them cannot overflow.
  static constexpr std::size_t kMostRows = std::size_t{1} << 32;

  TokenRouting(const Wanted& wanted, int ranks) : wanted_(wanted), ranks_(ranks) {}

  Wanted wanted_;
  int ranks_;
  std::vector<std::size_t> sent_, place_of_, received_;
  std::size_t dropped_ = 0;
};

}  // namespace anyccl
