#pragma once
// The C interface, groups and teams ask here what a communicator plans for calls, without running
// them.

#include <cstdint>
#include <string>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// How a communicator plans its collectives: by which policy, what a call should take, and how the
/// last one was done.
///
/// Threads: any. The communicator is borrowed.
class Planning {
 public:
  explicit Planning(Comm& comm) : comm_(comm) {}

  /// From now on algorithms are chosen by these. All ranks do this between the same operations,
  /// with equal policies.
  void set_policy(TunerPolicy policy);
  /// The number that calls with such a configuration carry; see CallSettingsTable.
  Result<std::uint8_t> settings_of_call(const CallSettingsTable::Text& text);
  /// A check that Comm::run() cannot do for a slice: whether the whole call makes sense. An
  /// operator that is created or wrong is left to Comm::run().
  Status check_whole(Call call) const;
  /// The buffers of a call that check_whole() finds right.
  Result<BufferShape> shape_of(const Call& call) const;
  /// Microseconds that the call should take, by the tuner's model. Errors: of its arguments.
  Result<double> predict(const Call& call);
  /// "all_reduce/two_shot Simple shm": how the last collective was done. Without shared memory "-"
  /// in place of a protocol that nobody asked for.
  std::string last_plan();

 private:
  Comm& comm_;
};

}  // namespace anyccl
