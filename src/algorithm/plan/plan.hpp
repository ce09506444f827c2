#pragma once
// A plan is what one rank runs for a collective: its schedule, lowered to wide steps over
// publications. lower() makes it of the schedules of all ranks. The executor (framework/collective)
// and the symbolic engine (algorithm/verify) run plans.

#include <cstdint>
#include <functional>
#include <vector>

#include "algorithm/schedule/schedule.hpp"
#include "anyccl/status.hpp"

namespace anyccl {

// A *publication* is a run of chunks that one rank makes readable to one or more peers. The rules
// that every transport, the executor and the symbolic engine share:
//
//  1. Publication p of tile t is number t * P + p of its publisher's operation, where P is how many
//     publications that rank makes per tile (Plan::publications). Nothing carries over from one
//     operation to the next, so a rank needs no memory of what its peers ran before.
//  2. A publisher has kBanks banks of `slots` slots. Number i of operation e lies in slot
//     i % slots of bank e % kBanks. A slot takes its publications in the order of their numbers.
//  3. A slot may be overwritten only when its last publication is *released*: each of its readers
//     has posted progress past the step that read it, or everyone is known to have finished that
//     operation. Each slot remembers its readers, so any plans may follow each other in one ring.
//  4. Tiles run in lanes: tile t in lane t % lanes, each lane its steps in order, lanes in any
//     order against each other. A rank posts its progress per lane: operation, then
//     (t / lanes) * Plan::ticks + PlanStep::tick; and, at the end of each operation, that it is
//     finished. It posts after every step that reads a peer if Plan::posts_each, else only at the
//     end. Ticks count the steps that read a peer and no others, so they do not depend on how a
//     rank's own memory is laid out, which its peers do not know (Shape::in_place).
//  5. If every rank's result depends on every rank (Plan::everyone), then a rank that finishes
//     operation e knows that everyone finished e - 1. That makes rule 3 one comparison for the
//     plans that matter most. It needs every publication to be made, those of zero bytes too.
//  6. A publisher may lend its own memory instead of a slot if the publication is `lendable`:
//     nothing in the operation overwrites a part of it, except with what the reader of that part
//     published after it had read it. Its operation then ends only when all readers of what it lent
//     have posted progress past it.

inline constexpr std::uint32_t kBanks = 8;
/// With this many slots per bank every plan of the catalog runs (the conformance test holds it).
inline constexpr std::uint32_t kLeastSlots = 4;

/// One wide operation: operands (own pieces and peers' publications) -> own memory and/or a
/// publication. copy, n-ary reduce, send, recv, recv_reduce, recv_copy_send, recv_reduce_send and
/// recv_reduce_copy_send are combinations of the flags, so the interpreter has one loop. Piece k is
/// `count` chunks from src (or dst) + k * stride, circular in input and output as a Slice is.
struct PlanStep {
  enum Flag : std::uint8_t {
    combine = 1,     ///< Reduce the operands (one rounding); else operand k goes to piece k.
    accumulate = 2,  ///< dst is the first operand.
    store = 4,       ///< Write dst.
    publish = 8,     ///< Put the result where peers can read it, and signal.
    lendable = 16,   ///< With publish: the published memory stays until it has been read (rule 6).
  };
  std::uint8_t flags = 0;
  std::uint8_t src_space : 4 = 0, dst_space : 4 = 0;
  std::uint16_t operands = 0;
  std::uint16_t publication = 0;  ///< With publish: which one, within the tile.
  std::uint16_t tick = 0;         ///< Number among the steps that read a peer, from 1; else 0.
  std::uint32_t first_ref = 0;    ///< Plan::refs: the operands.
  std::uint32_t src = 0, src_stride = 0, dst = 0, dst_stride = 0, count = 0;
};
static_assert(sizeof(PlanStep) == 32);

/// An operand: own piece k if `rank` is this rank, else `count` chunks from chunk `offset` of a
/// peer's publication.
struct Ref {
  std::uint16_t rank = 0;
  std::uint16_t publication = 0;
  std::uint32_t offset = 0;
};

/// One reader of a publication: the part it reads (chunks) and when it has surely read it.
struct Reader {
  std::uint16_t rank = 0;
  std::uint16_t tick = 0;               ///< That of the reader's last step that reads it.
  std::uint16_t ticks = 0;              ///< How many ticks the reader's plan has.
  std::uint32_t offset = 0, count = 0;  ///< The chunks it reads, within the publication.
};

struct Plan {
  /// The schedule that it was lowered from: memory layout and contract. Scratch only as far as the
  /// plan uses it.
  Schedule schedule;
  std::vector<PlanStep> steps = {};
  std::vector<Ref> refs = {};
  std::vector<std::uint32_t> step_of = {};       ///< Schedule step of each plan step, for messages.
  std::vector<std::uint32_t> publications = {};  ///< How many each rank makes per tile.
  /// published[p] are the origins in publication p, readers[p] says who reads it.
  std::vector<std::vector<Origin>> published = {};
  std::vector<std::vector<Reader>> readers = {};
  /// For each ref to a peer: the origins of the whole publication it reads from (parallel to refs).
  std::vector<std::vector<Origin>> read_from = {};
  std::uint16_t ticks = 0;  ///< How many steps read a peer.
  bool everyone = false;    ///< Every rank's result depends on every rank.
  /// Post progress after each step that reads a peer: someone has more publications per tile than
  /// slots, or may lend. Others do not know which ranks lend, so every rank that
  /// publishes bytes counts.
  bool posts_each = false;
};

/// Lowers rank `me`'s part of the schedules of all ranks (ranks[r].rank == r), fused. The schedules
/// have a sound structure (check_structure()).
///
/// `slots`: per bank, the same on all ranks. Personalised sends (Slice::stride > 0) of v-forms
/// become one publication per reader, so that each carries exactly the bytes of its pair; all other
/// sends are one publication. Shape::in_place matters only for `me`: what is said here about peers,
/// and what peers say about this rank, does not depend on it. Errors: internal, naming rank, step
/// and chunk of a send and receive that do not match; unsupported when a count does not fit.
Result<Plan> lower(const std::vector<Schedule>& ranks, Rank me, std::uint32_t slots);
/// Lowers schedules that are built one after the other, so that a plan of many ranks does not need
/// the memory of all. That of `me` is built twice.
Result<Plan> lower(const std::function<Schedule(Rank)>& build, int size, Rank me,
                   std::uint32_t slots);
/// The plans of all ranks, each as lower() makes it.
Result<std::vector<Plan>> lower_all(const std::vector<Schedule>& ranks, std::uint32_t slots);
/// One plan step per schedule step, nothing fused: what the author wrote, for the checker to run.
Result<std::vector<Plan>> lower_plainly(const std::vector<Schedule>& ranks);

}  // namespace anyccl
