#pragma once
// A handle of a communicator has a Team, mostly of one thread. Several threads of a rank do one
// AllReduce together with it.

#include <memory>
#include <mutex>
#include <vector>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// A communicator and one more of the same ranks for each further thread of a team: an all_reduce
/// that several threads of each rank do together, each with a slice of the vector in a communicator
/// of its own. See anycclAllReducePart. Threads share nothing that any of them writes.
class Team {
 public:
  /// The team is of one thread until add().
  explicit Team(std::shared_ptr<Comm> first) : first_(std::move(first)) {}

  Comm& first() const { return *first_; }
  /// How many threads may run().
  int size() const { return static_cast<int>(others_.size()) + 1; }
  /// For one thread more: a communicator of the same ranks, which gets the operators of the first
  /// one. Not while a thread is in run().
  void add(std::shared_ptr<Comm> comm);

  /// Runs slice `thread` of `call`, an all_reduce that `threads` threads of each rank do together.
  /// A short vector has fewer slices: threads without one return at once.
  Status run(Call call, int thread, int threads);
  /// After an error of run(): if it was no error of arguments, the slices of all threads, here and
  /// at the peers, fail with it. Whether it was so. Any thread.
  bool end(const Status& why);

  // As of one communicator, for all threads of the team:
  /// Writes what all of them know to a file. Errors: system_error.
  Status dump(const std::string& path) const;
  /// JSON of what all of them have done, see docs/observe/metrics.md.
  std::string metrics_text() const;
  Result<ReduceOp> add_operator(const Operator& op);
  /// Removes it from the first communicator alone: calls of the team look for it there.
  Status remove_operator(ReduceOp handle);
  void abort(const Status& why);          ///< Any thread.
  Status finish(Deadline deadline = {});  ///< See Shutdown.

 private:
  /// Errors: invalid_usage for more threads than size(), invalid_argument for a wrong `thread`.
  Status check_team(int thread, int threads) const;
  std::vector<std::shared_ptr<Comm>> all() const;

  const std::shared_ptr<Comm> first_;
  mutable std::mutex mutex_;                   // of others_ while it grows
  std::vector<std::shared_ptr<Comm>> others_;  // of threads 1, 2, ...
};

}  // namespace anyccl
