#pragma once
// Fusion: neighbouring small collectives of a group travel as one. Their inputs are packed into one
// buffer when the operation starts, and its result is unpacked before it is done. The results have
// the same bits as without: see PlanCache::count_fusible().

#include <memory>
#include <span>
#include <vector>

#include "framework/call/around_call.hpp"
#include "framework/call/call.hpp"
#include "framework/collective/planning_facts.hpp"
#include "framework/tuning/plan_settings.hpp"

namespace anyccl {

/// How many of the first calls may be parts of one, as far as their arguments say: same collective,
/// type, operator of the library, root and configuration, small, and none reads what another one
/// before it writes, unless that is a matter of the root alone, which FusedCall keeps in order.
/// Calls of Reduce and Exscan never are parts. All ranks get the same number, if the arguments that
/// have to be equal are (docs/programming.md), and if calls that depend on each other on one rank
/// do so on all.
std::size_t count_alike(std::span<const Call* const> calls, const PlanningFacts& me,
                        const CallSettingsTable& settings);

/// The time limit of calls that travel as one: the shortest one. `most`: of calls without a limit;
/// 0: none.
std::chrono::milliseconds shortest_limit(std::span<const Call* const> calls,
                                         std::chrono::milliseconds most);

/// One call in place of several. May be used again.
class FusedCall final : public AroundCall {
 public:
  /// `parts`: what count_alike() allows. `limit`: of all of them; 0: that of the communicator.
  void begin(std::span<const Call* const> parts, const PlanningFacts& me,
             std::chrono::milliseconds limit);

  const Call& call() const { return call_; }
  FusedParts parts() const { return {static_cast<std::uint32_t>(parts_.size()), hash_}; }
  /// Packs the inputs of its parts into one. At the root of a broadcast or scatter it also copies
  /// the root's own blocks to the outputs.
  void before() override;
  /// Copies the results to the outputs of its parts; does nothing at the root of a broadcast or
  /// scatter, where before() has done it.
  Status after() override;

 private:
  struct Part {
    const std::byte* input;
    std::byte* output;
    std::size_t bytes;  ///< One block's.
  };
  /// What happens to a rank's own block, which the root of a call may move by itself.
  enum class Own : std::uint8_t {
    travels,  ///< It goes through the packed call.
    given,    ///< Broadcast or scatter at the root: before() copies it, each part in its turn.
    taken,    ///< Gather at the root: after() copies it, each part in its turn.
  };
  struct Memory {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
    std::byte* of(std::size_t wanted);
  };

  std::size_t own_block() const;  // among the blocks of the root's larger side

  Call call_;
  std::vector<Part> parts_;
  std::uint32_t hash_ = 0;
  std::size_t block_ = 0;  // bytes that all parts have of one rank's block
  std::size_t blocks_in_ = 0, blocks_out_ = 0;
  Own own_ = Own::travels;
  Memory input_, output_;
};

}  // namespace anyccl
