#pragma once
// The symbolic machine runs plans on terms (terms.hpp) in place of elements. The checks run
// schedules and plans on it, and `anyccl draw` shows the moves that it traces.

#include <cstdint>
#include <span>
#include <vector>

#include "algorithm/plan/plan.hpp"
#include "algorithm/verify/terms.hpp"

namespace anyccl::verify {

/// One operation of a communicator: the plans of all its ranks, alive until the simulation ends.
struct Operation {
  const std::vector<Plan>* plans = nullptr;
  std::uint32_t tiles = 1;
};

/// How the publications lie and who lends, in all operations of a simulation.
struct Setting {
  std::uint32_t slots = 8;       ///< Per bank and publisher.
  std::uint32_t banks = kBanks;  ///< Fewer reuse slots sooner, which is harder.
  std::uint32_t lanes = 1;       ///< Tiles in flight at most.
  std::vector<bool> lends = {};  ///< By rank: lends all that it may. Empty: nobody lends.
  /// Everyone lends everything, and a step that overwrites what is lent waits until it has been
  /// read: what the author of a schedule must reckon with.
  bool rendezvous = false;
  bool trace = false;  ///< Fill Outcome::trace. For one operation of one tile.
};

/// The moves, for callers that show them.
struct Trace {
  /// The part of a publication that one rank read.
  struct Message {
    std::size_t from = 0, to = 0;
    std::uint32_t sent_in = 0;  ///< The round of the publication, from 1.
    std::uint32_t read_by = 0;  ///< The reader's plan step.
    std::vector<TermId> values = {};
  };
  struct Step {
    std::uint32_t round = 0;        ///< That of the last publication that it waited for.
    std::vector<TermId> sums = {};  ///< What it made, if it combines.
  };
  std::vector<Message> messages = {};
  std::vector<std::vector<Step>> steps = {};  ///< [rank][plan step]
};

struct Outcome {
  std::uint32_t rounds = 0;     ///< Wide publications on the longest path, one at a time per rank.
  std::uint32_t sent = 0;       ///< Chunks that peers read from the busiest rank, per tile.
  std::uint32_t roundings = 0;  ///< Those of the worst result.
  std::uint32_t slots = 0;      ///< With how many it ran.
  std::vector<std::vector<TermId>> output = {};  ///< After the last tile: [rank][chunk].
  Trace trace = {};
};

/// Runs operations back to back on symbols, by the rules of plan.hpp. The rules leave no choice of
/// what waits for what, so one execution decides: if it ends, so does every interleaving. Vector
/// clocks then find what another interleaving could reorder: a slot or lent memory overwritten
/// before it was surely read, a return while lent, an `everyone` that is not true. Errors:
/// internal, naming rank, step and chunk; unsupported for more than kMaxRanks ranks.
Result<Outcome> simulate(std::span<const Operation> operations, const Setting& setting,
                         Terms& terms);

/// One operation of one tile, everyone staging, with the fewest slots with which it ends.
/// Errors: what simulate() says with one slot per publication.
Result<Outcome> fewest_slots(const std::vector<Plan>& plans, Terms& terms);

}  // namespace anyccl::verify
