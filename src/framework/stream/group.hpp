#pragma once
// The C interface collects the calls between anycclGroupStart and anycclGroupEnd here, and then
// issues them together.

#include <functional>
#include <memory>
#include <vector>

#include "framework/stream/stream.hpp"

namespace anyccl {

/// Calls that one thread issues together; see anycclGroupStart.
class CallGroup {
 public:
  /// `stream`: null if run() is to wait for it.
  void add(const std::shared_ptr<Comm>& comm, const Call& call, std::shared_ptr<HostStream> stream);
  void add(const std::shared_ptr<Comm>& comm, const OneSidedCall& call,
           std::shared_ptr<HostStream> stream);
  /// Issues everything and returns when all that belongs to no stream is complete, with the first
  /// error. Then it is empty.
  Status run();
  /// Microseconds that it should take, by the tuner's model. Errors: those of the calls' arguments.
  Result<double> predict() const;

 private:
  struct Entry {
    Entry(Comm& c, const Call& call, std::shared_ptr<HostStream> s)
        : comm(&c), kept(call, c.rank(), c.size()), stream(std::move(s)) {}
    Comm* comm;
    KeptCall kept;
    std::shared_ptr<HostStream> stream;
    HeldOperator op;  ///< That it names, of the program; or null.
    /// What it is instead, and `kept` is a message that takes as long; or null.
    std::unique_ptr<KeptOneSidedCall> one_sided;
  };
  struct Run {
    Comm* comm;
    std::vector<const Call*> calls;
    std::vector<const HostStream*> streams;   ///< That each call is in.
    const OneSidedCall* one_sided = nullptr;  ///< Instead of `calls`, or null.
  };
  std::vector<Run> runs() const;
  Result<std::vector<Batch>> make_batches() const;
  static Comm::IssuedCalls issue(const Run& run);
  Status run_in_one_communicator();
  /// Issues all calls, gives those of streams to their streams, and waits for the others.
  Status issue_and_wait() const;

  std::vector<Entry> entries_;
  std::vector<std::shared_ptr<Comm>> comms_;  // keeps those of the entries alive
  std::vector<const Call*> calls_;            // room for run_in_one_communicator()
};

}  // namespace anyccl
