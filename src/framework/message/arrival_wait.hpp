#pragma once
// OneSided makes such a wait for signals, and for puts that have to land before a window ends.

#include <vector>

#include "framework/call/operation.hpp"

namespace anyccl {

/// A wait until counts of arrivals have come to given numbers.
///
/// Threads: the holder of the communicator's progress lock.
class ArrivalWait final : public Operation {
 public:
  struct Count {
    Rank from;
    const std::uint64_t* arrived;
    std::uint64_t wanted;
  };

  /// For another call: it waits for nothing yet. `kind`: see Operation.
  void begin(Gate gate, std::uint32_t kind) {
    restart();
    limit({});
    set(gate);
    set_kind(kind);
    left_.clear();
  }
  void add(const Count& count) { left_.push_back(count); }
  bool advance() override {
    if (done() || !is_open()) return false;
    const auto reached =
        std::erase_if(left_, [](const Count& count) { return *count.arrived >= count.wanted; });
    if (left_.empty()) complete({});
    return reached > 0 || done();
  }
  void awaited(std::vector<Rank>& ranks) const override {
    for (const Count& count : left_) ranks.push_back(count.from);
  }
  std::string what() const override { return "a wait for signals"; }
  std::uint64_t progress() const override {
    std::uint64_t sum = 0;
    for (const Count& count : left_) sum += *count.arrived;
    return sum + (left_.size() << 48);
  }

  const std::vector<Count>& left() const { return left_; }

 private:
  std::vector<Count> left_;
};

}  // namespace anyccl
