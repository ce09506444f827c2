#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/status.hpp"

namespace anyccl::cli {

/// What takes time in a step of a schedule: messages that leave or are awaited, and then additions.
struct ProgramStep {
  bool sends = false;
  std::uint32_t first_peer = 0, peers = 0;  ///< In RankPrograms::peers_of().
  std::uint32_t chunks = 0;                 ///< In each message, and in each addition.
  std::uint32_t additions = 0;
};

/// What takes time in the schedules of all ranks. Ranks that do the same, counted from
/// their own position, share one program.
class RankPrograms {
 public:
  /// Builds the schedules one after the other and keeps none. Errors: invalid_argument, if the
  /// algorithm does not support the shape or sends too many messages.
  static Result<RankPrograms> of(const Algorithm& algorithm, Shape shape);

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(program_of_.size()); }
  std::uint64_t messages() const { return messages_; }
  /// 0: messages have no bytes.
  std::uint32_t chunks_per_block() const { return chunks_per_block_; }
  std::size_t distinct() const { return programs_.size(); }

  std::span<const ProgramStep> steps(std::uint32_t rank) const {
    const Program& p = programs_[program_of_[rank]];
    return {steps_.data() + p.first_step, p.steps};
  }
  /// The distance from this rank to each peer of a send, around the circle of ranks. Of another
  /// step, the number of each peer among the senders of this rank.
  std::span<const std::uint32_t> peers_of(std::uint32_t rank, const ProgramStep& step) const {
    return {peers_.data() + programs_[program_of_[rank]].first_peer + step.first_peer, step.peers};
  }
  /// The distances to the ranks that send to this one, ascending.
  std::span<const std::uint32_t> senders(std::uint32_t rank) const {
    const Program& p = programs_[program_of_[rank]];
    return {senders_.data() + p.first_sender, p.senders};
  }
  std::uint32_t rank_after(std::uint32_t rank, std::uint32_t distance) const {
    const std::uint32_t to_the_end = ranks() - rank;
    return distance < to_the_end ? rank + distance : distance - to_the_end;
  }
  /// How many ranks `to` comes after `from`.
  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    return to >= from ? to - from : to + ranks() - from;
  }

 private:
  struct Program {
    std::size_t first_step = 0, first_peer = 0, first_sender = 0;
    std::uint32_t steps = 0, peers = 0, senders = 0;
  };
  friend class ProgramWriter;
  std::vector<Program> programs_;
  std::vector<std::uint32_t> program_of_;  ///< By rank.
  std::vector<ProgramStep> steps_;
  std::vector<std::uint32_t> peers_, senders_;
  std::uint64_t messages_ = 0;
  std::uint32_t chunks_per_block_ = 0;
};

}  // namespace anyccl::cli
