#pragma once
// One call with all that it needs until it is complete, and what the user has of it.

#include <functional>
#include <memory>
#include <vector>

#include "result.hpp"
#include "waiting.hpp"

namespace anyccl::python {

class Communicator;
class Operator;
class Stream;
using CommunicatorPtr = std::shared_ptr<Communicator>;
using OperatorPtr = std::shared_ptr<Operator>;
using StreamPtr = std::shared_ptr<Stream>;
class Event;
using EventPtr = std::shared_ptr<Event>;

/// How one call is made.
struct Options {
  bool async = false;
  StreamPtr stream;  // null: none
  Seconds timeout;   // none: the communicator's
};

/// Blocks of different sizes, in elements.
struct BlockLayout {
  std::vector<std::size_t> counts, displs;
  std::int64_t rows = 0;  // the least that the array must have
};

/// A call, and the owners of what it points to.
struct Request {
  using Start = std::function<anycclResult_t(anycclComm_t, anycclStream_t)>;
  /// What few calls have.
  struct Extras {
    Start start;  // a call of the library that is none of anycclCall_t, in place of it
    BlockLayout sent, received;
    std::vector<Array> arrays;                                  // that `start` uses
    std::shared_ptr<void> context;                              // the same
    anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;  // that `call` may have
  };

  bool is_other() const { return extras != nullptr && extras->start; }
  Extras& extras_on_demand();
  /// Returns when it is complete; in a stream, or in a group of the library, at once.
  anycclResult_t launch(anycclComm_t comm, anycclStream_t stream);

  anycclCall_t call{};
  Array input;
  Result result;
  OperatorPtr op;
  std::unique_ptr<Extras> extras;
};

/// A request that was issued, or will be at the end of a group.
struct Operation {
  explicit Operation(Request r) : request(std::move(r)) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation() { static_cast<void>(anycclWorkFree(work)); }

  /// Whether the library has nothing to do with it any more; makes progress. Without the
  /// interpreter lock.
  bool is_settled();
  /// Returns when it is complete, with how it ended; InProgress if that takes longer than
  /// `timeout`.
  Outcome wait(Seconds timeout);
  /// Whether it may write where `copied` was copied from.
  bool writes_into(const Array& copied) const;

  Request request;
  bool in_open_group = false;
  // How it is waited for, in this order:
  std::optional<Outcome> outcome;  // it is complete, or was never started
  anycclWork_t work = nullptr;
  EventPtr end;  // behind it in its stream
  StreamPtr stream;
};
using OperationPtr = std::shared_ptr<Operation>;

/// Operations of a communicator that may be under way; it keeps none of them alive.
class IssuedOperations {
 public:
  /// Notes the operation for those that come later, and does not keep it alive.
  void add(const OperationPtr& operation);
  /// For a request that is issued now: copies of its inputs get their elements when all earlier
  /// operations have written; in `stream`, unless it is null, when its turn comes.
  void copy_inputs(const Request& request, Stream* stream) const;
  /// Waits for earlier operations that may write into `array`, but for those of `stream`.
  void finish_writers(const Array& array, const Stream* stream = nullptr) const;

 private:
  std::vector<std::weak_ptr<Operation>> all_;
  std::size_t many_ = 64;  // The number at which those that are gone are looked for.
};

/// What a call with async_op=True returns. Any thread.
class Work {
 public:
  Work(CommunicatorPtr comm, OperationPtr operation);
  Work(Work&&) = default;
  ~Work();

  nb::object wait(Seconds timeout);
  bool test();
  bool done();
  /// The rank that a received message came from.
  int source();
  /// From now on the operation has this time limit.
  void set_limit(Seconds seconds);

 private:
  /// Sets `complete_` if it is complete or has failed, and never waits. Success while it is under
  /// way.
  Outcome ask_outcome();
  void complete();
  void need_issued() const;

  CommunicatorPtr comm_;
  OperationPtr operation_;
  bool complete_ = false;
};

}  // namespace anyccl::python
