#pragma once
// A stream does its work in order, in a thread of its own. Operations are put into it by a Batch.

#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/condition.hpp"
#include "base/deadline.hpp"
#include "framework/communicator/pending_operation.hpp"
#include "framework/communicator/persistent.hpp"
#include "framework/stream/event.hpp"

namespace anyccl {

/// What a thread is about to wait for.
struct Awaited {
  const Operation* operation = nullptr;
  const Moment* moment = nullptr;
  const Comm* comm = nullptr;  ///< What is open there,
  const Call* call = nullptr;  ///< or, unless it is null, what comes before this call.
};

/// The next action of a stream.
class StreamItem {
 public:
  virtual ~StreamItem() = default;
  /// `so_far`: the first error of the stream until now. Errors do not end the stream.
  virtual Status run(const Status& so_far) = 0;
  /// It runs code of the program, which must not meet the end of the process.
  virtual bool is_foreign() const { return false; }
  /// It only tells others that the stream is here, which takes no time: a thread that has waited
  /// for the last of these finds the stream done.
  virtual bool is_mark() const { return false; }
  /// For the trace: somebody waits for this item, or for one behind it. Any thread, beside run().
  virtual void note_wait() const {}
  /// Who waits for that waits for this item.
  virtual bool is_needed_by(const Awaited&) const { return false; }
};

/// A queue of work on host memory: a thread of its own, started with the first work, does it in
/// order. See anycclStreamCreate. Lives until it is closed and its work is done.
///
/// Threads: any; the order of the calls is the order of the work.
class HostStream : public std::enable_shared_from_this<HostStream> {
 public:
  using Items = std::list<std::unique_ptr<StreamItem>>;

  /// `number`: what traces call it; 0: nothing. Of more than 255, those share the last one.
  explicit HostStream(std::uint64_t number = 0);
  std::uint8_t number() const { return number_; }
  /// Ok, or why it cannot be used: it belongs to the parent of this process.
  Status check() const;

  /// Before each push(): starts the thread, if there is none, and keeps it until then. Errors:
  /// system_error.
  Status start();
  /// Puts the items, or none, behind everything that is queued.
  void push(Items items) noexcept;

  Status call(void (*function)(void*), void* argument);
  Status record(std::shared_ptr<Moment> moment);
  /// Later work starts when the moment is reached; an error before it is this stream's, too.
  Status wait_for(std::shared_ptr<const Moment> moment);

  /// Returns when everything queued is done, with the first error of the stream. Errors:
  /// invalid_usage in a function of this stream.
  Status synchronize();
  /// Whether this thread can wait for `awaited`. Errors: invalid_usage if the thread is in a
  /// function of a stream, and `awaited` stands behind that function.
  static Status check_wait(const Awaited& awaited);
  /// For the trace: somebody waits for `moment`, and so for what the stream has before it.
  void note_wait(const Moment& moment) const;
  /// Whether everything queued is done. Errors: the first one of the stream.
  Result<bool> query() const;
  /// The thread ends when everything queued is done.
  void close();
  /// At exit: nothing more starts, and no code of the program runs, unless it takes longer than
  /// until `deadline`.
  void stop(Deadline deadline);

 private:
  Status add(std::unique_ptr<StreamItem> item);
  void work();

  mutable std::mutex mutex_;
  Condition ready_, finished_;
  Items queue_;
  const StreamItem* running_ = nullptr;
  std::uint64_t pushed_ = 0, done_ = 0;  // items
  Status first_error_;
  std::thread::id worker_;    // of a closed stream it ends with the work, and may begin again
  std::size_t promised_ = 0;  // pushes that start() was called for
  bool closed_ = false, stopping_ = false, in_foreign_code_ = false;
  std::uint64_t fork_generation_;
  const std::uint8_t number_;
};

/// Operations that are issued together and belong to one stream: each takes its place in its
/// communicator at once, and all may start when the stream comes to them. The end of the batch puts
/// them into the stream.
class Batch {
 public:
  /// Does what can fail for up to `most` operations.
  static Result<Batch> make(std::shared_ptr<HostStream> stream, std::size_t most);
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = delete;
  ~Batch();

  Result<std::shared_ptr<Operation>> issue(const std::shared_ptr<Comm>& comm, const Call& call);
  /// As PersistentRequest::start(); `comm` is that of the call.
  Result<std::shared_ptr<Operation>> start(const std::shared_ptr<Comm>& comm,
                                           PersistentRequest& call);
  Result<std::shared_ptr<Operation>> issue(const std::shared_ptr<Comm>& comm,
                                           const OneSidedCall& call);
  /// An operation that was issued with a closed gate, which belongs to this stream, too. Whether it
  /// is new here: the calls of an operation that is several come one after the other.
  bool add(const std::shared_ptr<Comm>& comm, const std::shared_ptr<Operation>& operation);
  const HostStream* stream() const { return stream_.get(); }

 private:
  class Operations;
  Batch(std::shared_ptr<HostStream> stream, std::size_t most);

  std::shared_ptr<HostStream> stream_;
  HostStream::Items items_;  // one
  Operations* operations_;   // the same
};

}  // namespace anyccl
