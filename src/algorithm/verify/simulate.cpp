#include "algorithm/verify/simulate.hpp"

#include <algorithm>

#include "algorithm/verify/engine.hpp"
#include "base/error.hpp"

namespace anyccl::verify {

Result<Outcome> simulate(std::span<const Operation> operations, const Setting& setting,
                         Terms& terms) {
  const std::size_t n = operations[0].plans->size();
  if (n > kMaxRanks)
    return error(Code::unsupported, "a symbolic run has at most {} ranks, this one has {}",
                 kMaxRanks, n);
  return Engine(operations, setting, terms).run();
}

Result<Outcome> fewest_slots(const std::vector<Plan>& plans, Terms& terms) {
  std::uint32_t most = 1;  // with as many, nobody waits for a slot
  for (std::uint32_t p : plans[0].publications) most = std::max(most, p);
  for (std::uint32_t slots = 1;; ++slots) {
    const Operation once{&plans};
    auto outcome = simulate({&once, 1}, {.slots = slots}, terms);
    if (outcome.ok() || slots >= most) return outcome;
  }
}

}  // namespace anyccl::verify
