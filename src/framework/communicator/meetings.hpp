#pragma once
// Calls whose data goes through queues of devices meet here, and agree about memory for that.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// What ranks do on the host for calls whose data goes another way.
///
/// Threads: any. The communicator is borrowed.
class Meetings {
 public:
  /// Memory that all ranks show each other, by rank.
  using AllShown = std::vector<ShownMemory>;

  /// `limit`: the time that exchange() and show() may take each; 0: as operations.
  explicit Meetings(Comm& comm, std::chrono::milliseconds limit = {})
      : comm_(comm), limit_(limit) {}

  /// How this rank reaches its peers, for plans.
  const std::vector<Publications*>& routes() const { return comm_.routes_.publications_to; }
  using Use = std::function<Status(const AllShown&)>;
  /// Collective: `all`, by rank, gets what each rank tells, each as many bytes.
  Status exchange(std::span<const std::byte> mine, std::byte* all);
  /// Collective: each rank shows the others zeroed memory of these sizes, and prepares to `use` all
  /// of it. `problem`: why this rank cannot. Errors, on all ranks: those of the first that has one.
  Status show(std::size_t read_bytes, std::size_t written_bytes, Status problem, const Use& use);
  /// Returns when no other thread is in a CallSequence. Errors: as of Comm::issue().
  Status await_turn(const Call& call, const Deadline& until);
  /// Gives a call, of which `data` is the plan, its place among the collectives, without its data.
  /// It is done when all ranks have called it: after around.after(), which comes at once then.
  /// Errors: as of Comm::issue(), but in_progress at once.
  Result<std::shared_ptr<Operation>> issue(const Call& call, const PreparedCall& data,
                                           AroundCall& around);
  /// Does the same for a message: done when it has met the one of its peer, and at once for a send
  /// with room there. Errors: as of Comm::issue().
  Result<std::shared_ptr<Operation>> issue(const Call& message, AroundCall* around);
  /// Fails the communicator if an operation, whose ranks have met, will never be done, as far as
  /// can be seen, or is late. `begins`: its time limit counts from now on.
  void check(Operation& operation, bool begins);
  /// Fails the communicator if the process of a peer has died.
  void check_deaths();

 private:
  Result<ShownMemory> show_mine(std::size_t read_bytes, std::size_t written_bytes);
  Result<AllShown> find_all(const ShownMemory& mine);
  Status tell_all(const Status& mine);

  Comm& comm_;
  const std::chrono::milliseconds limit_;
};

}  // namespace anyccl
