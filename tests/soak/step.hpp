#pragma once
// One step of a rank: some random calls at once, each checked.

#include <deque>
#include <string>
#include <vector>

#include "anyccl/anyccl.hpp"
#include "soak/random_call.hpp"

namespace anyccl::soak {

/// Random configurations of calls, the same on all ranks. A communicator may see 63 different ones.
class CallConfigs {
 public:
  explicit CallConfigs(Random& random);
  const anycclCollConfig_t& at(int i) const {
    return configs_[static_cast<std::size_t>(i) % configs_.size()];
  }

 private:
  std::deque<std::string> texts_;
  std::vector<anycclCollConfig_t> configs_;
};

/// One rank's part of a call, with its buffer.
class CallUnderTest {
 public:
  CallUnderTest(const RandomCall& call, int me, const anycclCollConfig_t& config);
  CallUnderTest(const CallUnderTest&) = delete;
  CallUnderTest& operator=(const CallUnderTest&) = delete;

  bool takes_part() const { return layout_.takes_part; }
  const anycclCall_t& call() const { return c_call_; }
  /// What is wrong after the call; "" if nothing.
  std::string problem() const;

 private:
  RandomCall random_call_;
  CallLayout layout_;
  anycclCall_t c_call_{};
  std::vector<std::byte> buffer_, want_;
};

/// What became of a step.
struct StepOutcome {
  Status status;          ///< The first error.
  std::string wrong;      ///< The first wrong result of a call without one.
  std::size_t calls = 0;  ///< That this rank took part in, and whose results were right.
};

/// Runs a step of all ranks of `comm`, whose `random` is in the same state. `number`: of the step.
StepOutcome run_step(Communicator& comm, Random random, const CallConfigs& configs, int number);

}  // namespace anyccl::soak
