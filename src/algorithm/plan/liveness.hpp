#pragma once
// The uses of a rank's memory over one schedule. Private to plan/.

#include <cstdint>
#include <vector>

#include "algorithm/schedule/schedule.hpp"

namespace anyccl {

/// When each cell of a schedule's memory is read and written.
class Liveness {
 public:
  explicit Liveness(const Schedule& schedule);
  /// Nobody reads the cells after `step`: they are overwritten first, or (scratch) never used
  /// again.
  bool dead_after(std::uint32_t step, const std::vector<std::uint32_t>& cells, bool scratch) const;
  bool written_after(std::uint32_t step, const std::vector<std::uint32_t>& cells) const;
  /// The steps after `step` that write the cell.
  std::vector<std::uint32_t> writes_after(std::uint32_t step, std::uint32_t cell) const;
  bool written_between(std::uint32_t after, std::uint32_t before,
                       const std::vector<std::uint32_t>& cells) const;

 private:
  struct Use {
    std::uint32_t step;
    bool write;  // a step that reads and writes a cell has its read first
  };
  std::vector<Use>::const_iterator first_use_after(std::uint32_t step, std::uint32_t cell) const;
  std::vector<std::vector<Use>> uses_;
};

/// The schedule without the copies into scratch that only guard against lending: once a send is
/// staged, those who read the copy may as well read what was copied, if it is still there.
/// `step_of` becomes, for each step that is left, its number in `schedule`.
Schedule without_guard_copies(const Schedule& schedule, std::vector<std::uint32_t>& step_of);

}  // namespace anyccl
