#pragma once
// Streams and events.

#include <memory>
#include <string>
#include <vector>

#include "operation.hpp"

namespace anyccl::python {

/// A queue of work. Everything is called with the interpreter lock held.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  anycclStream_t handle() const { return handle_; }
  /// Returns when all work that is in it now is done; raises its first error.
  void synchronize(Seconds timeout);
  /// Whether all work is done; raises its first error.
  bool query();
  /// Whether all work is done or one has failed.
  bool done();
  /// The first error, without raising it. Of a stream whose work is not done: so far.
  Outcome status() const;
  void run(nb::callable function);
  void wait_event(anycclEvent_t event);

  /// A new event behind all work that is in it now.
  EventPtr record_end();
  /// The communicator keeps arrays of operations of this stream.
  void note_use(const CommunicatorPtr& comm);
  /// The exceptions of functions.
  struct Failures;
  /// Raises `outcome`, or the exception of the function of this stream that has caused it. Does
  /// nothing if it is a success.
  void raise_failure(const Outcome& outcome) const;

 private:
  anycclStream_t handle_ = nullptr;
  std::shared_ptr<Failures> failures_;
  std::vector<std::weak_ptr<Communicator>> used_;
};

/// A place in a stream's work.
class Event {
 public:
  Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { static_cast<void>(anycclEventDestroy(handle_)); }

  anycclEvent_t handle() const { return handle_; }
  void record(Stream& stream);
  bool query() const;
  bool done() const;
  void synchronize(Seconds timeout) const;
  /// Whether it is complete, with or without an error. Needs no interpreter lock.
  bool is_complete() const { return anycclEventQuery(handle_) != anycclInProgress; }
  /// Whether it was complete before `ms` milliseconds have passed. Needs no interpreter lock.
  bool wait_for(unsigned ms) const {
    return anycclEventSynchronizeFor(handle_, ms) != anycclInProgress;
  }
  /// In milliseconds.
  float elapsed_time(const Event& end) const;

 private:
  Outcome status() const;

  anycclEvent_t handle_ = nullptr;
  StreamPtr stream_;  // whose functions may have raised
};

}  // namespace anyccl::python
