#pragma once
// Streams and events of the C++ interface (anyccl.hpp includes this).

#include <memory>
#include <utility>

#include "anyccl/anyccl.h"
#include "anyccl/status.hpp"

namespace anyccl {

namespace detail {
inline Status status_of(anycclResult_t code, anycclComm_t comm = nullptr) {
  if (code == anycclSuccess) return {};
  const char* text = anycclGetLastError(comm);
  return Status(static_cast<Code>(code), *text != '\0' ? text : anycclGetErrorString(code));
}
/// The answer to a query.
inline Result<bool> done(anycclResult_t code) {
  if (code == anycclInProgress) return false;
  const Status status = status_of(code);
  if (!status.ok()) return status;
  return true;
}
}  // namespace detail

class Stream;

/// A place in a stream's work, once it is recorded. Any thread; see anycclEventCreate.
class Event {
 public:
  static Result<Event> create() {
    Event event;
    const Status status = detail::status_of(anycclEventCreate(&event.handle_));
    if (!status.ok()) return status;
    return event;
  }
  Event() = default;
  Event(Event&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { static_cast<void>(anycclEventDestroy(handle_)); }
  anycclEvent_t handle() const { return handle_; }

  /// Complete when all work that is in `stream` now is done.
  Status record(const Stream& stream);
  /// Whether it is complete, as one that was never recorded is. Errors: the first one of the work
  /// before it.
  Result<bool> query() const { return detail::done(anycclEventQuery(handle_)); }
  /// Returns when it is complete, with the first error of the work before it.
  Status synchronize() const { return detail::status_of(anycclEventSynchronize(handle_)); }
  /// synchronize(), but in_progress if it is not complete after `milliseconds`: the stream goes on
  /// then.
  Status synchronize_for(unsigned milliseconds) const {
    const anycclResult_t result = anycclEventSynchronizeFor(handle_, milliseconds);
    return result == anycclInProgress ? Status(Code::in_progress, "the event is not complete")
                                      : detail::status_of(result);
  }

 private:
  anycclEvent_t handle_ = nullptr;
};

/// Milliseconds between two complete events. Errors: invalid_usage if one was never recorded,
/// in_progress if one is not complete.
inline Result<float> elapsed_ms(const Event& start, const Event& end) {
  float ms = 0;
  const anycclResult_t result = anycclEventElapsedTime(&ms, start.handle(), end.handle());
  if (result == anycclInProgress) return Status(Code::in_progress, "the events are not complete");
  const Status status = detail::status_of(result);
  if (!status.ok()) return status;
  return ms;
}

/// A queue of work that is done while the program goes on, in the order of the calls; see
/// anycclStreamCreate. Dropping it does not stop it. A default one is no stream. Any thread.
class Stream {
 public:
  static Result<Stream> create() {
    Stream stream;
    const Status status = detail::status_of(anycclStreamCreate(&stream.handle_));
    if (!status.ok()) return status;
    return stream;
  }
  /// Stands for `native`, a stream of a device, as a CUstream: for calls of communicators that have
  /// that device, and for nothing else. See anycclStreamWrap.
  static Result<Stream> wrap(int device, void* native) {
    Stream stream;
    const Status status = detail::status_of(anycclStreamWrap(&stream.handle_, device, native));
    if (!status.ok()) return status;
    return stream;
  }
  Stream() = default;
  Stream(Stream&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { static_cast<void>(anycclStreamDestroy(handle_)); }
  anycclStream_t handle() const { return handle_; }

  /// Calls function() when earlier work is done, in the stream's thread; later work starts when it
  /// has returned. It must not wait for this stream, nor for operations that come after it. An
  /// exception from it is an error of the stream.
  template <typename Function>
  Status run(Function function) {
    auto kept = std::make_unique<Function>(std::move(function));
    const auto call = [](void* data) {
      (*std::unique_ptr<Function>(static_cast<Function*>(data)))();
    };
    const Status status = detail::status_of(anycclLaunchHostFunc(handle_, call, kept.get()));
    if (status.ok()) static_cast<void>(kept.release());
    return status;
  }
  /// Later work starts when what `event` was last recorded at is done; an error of that is an error
  /// of this stream, too.
  Status wait(const Event& event) {
    return detail::status_of(anycclStreamWaitEvent(handle_, event.handle()));
  }
  /// Whether all work is done. Errors: the first one of the work.
  Result<bool> query() const { return detail::done(anycclStreamQuery(handle_)); }
  /// Returns when all work that is in it now is done, with the first error.
  Status synchronize() { return detail::status_of(anycclStreamSynchronize(handle_)); }

 private:
  anycclStream_t handle_ = nullptr;
};

inline Status Event::record(const Stream& stream) {
  return detail::status_of(anycclEventRecord(handle_, stream.handle()));
}

}  // namespace anyccl
