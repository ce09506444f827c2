// The C interface: streams and events.

#include "base/error.hpp"
#include "c/handle.hpp"

namespace anyccl {

Status need_stream(anycclStream_t stream) {
  ANYCCL_CHECK(need(stream, "stream"));
  if (stream->device != nullptr)
    return error(Code::invalid_usage,
                 "the stream is one of device {}: the driver does this with it, not this library",
                 stream->device->number());
  if (stream->stream == nullptr)
    return error(Code::invalid_usage,
                 "the stream was destroyed: its handle must not be used any more");
  return stream->stream->check();
}

namespace {

/// Returns an error unless it is not NULL, not destroyed, and of this process.
Status need_event(anycclEvent_t event, const char* what) {
  ANYCCL_CHECK(need(event, what));
  if (event->destroyed)
    return error(Code::invalid_usage, "the {} was destroyed: its handle must not be used any more",
                 what == std::string_view("event") ? "event" : fmt::format("{} event", what));
  return event->event.check();
}

/// Not finished is a code, but no error that anycclGetLastError or a group should remember.
anycclResult_t unless_open(anycclResult_t result, bool done) {
  return result == anycclSuccess && !done ? anycclInProgress : result;
}

}  // namespace
}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclStreamCreate(anycclStream_t* stream) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(stream, "stream"));
    *stream = nullptr;
    *stream = new anycclStream{make_stream(), nullptr};
    return {};
  });
}

anycclResult_t anycclStreamDestroy(anycclStream_t stream) {
  return guarded(nullptr, [&]() -> Status {
    if (stream == nullptr) return {};
    const Status usable = need_stream(stream);
    if (stream->is_destroyed()) return usable;
    if (usable.ok()) stream->stream->close();
    stream->stream = nullptr;
    stream->device = nullptr;
    bury(std::unique_ptr<anycclStream>(stream));
    return {};
  });
}

anycclResult_t anycclStreamSynchronize(anycclStream_t stream) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_stream(stream));
    ANYCCL_CHECK(check_wait({}));
    const std::shared_ptr<HostStream> kept = stream->stream;
    return kept->synchronize();
  });
}

anycclResult_t anycclStreamQuery(anycclStream_t stream) {
  bool done = false;
  const anycclResult_t result = guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_stream(stream));
    ANYCCL_TRY(done, stream->stream->query());
    return {};
  });
  return unless_open(result, done);
}

anycclResult_t anycclStreamWaitEvent(anycclStream_t stream, anycclEvent_t event) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_stream(stream));
    ANYCCL_CHECK(need_event(event, "event"));
    std::shared_ptr<const Moment> moment = event->event.latest();
    return moment == nullptr ? Status{} : stream->stream->wait_for(std::move(moment));
  });
}

anycclResult_t anycclLaunchHostFunc(anycclStream_t stream, void (*fn)(void*), void* userdata) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_stream(stream));
    if (fn == nullptr) return error(Code::invalid_argument, "fn is NULL");
    return stream->stream->call(fn, userdata);
  });
}

anycclResult_t anycclEventCreate(anycclEvent_t* event) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(event, "event"));
    *event = nullptr;
    *event = new anycclEvent;
    return {};
  });
}

anycclResult_t anycclEventDestroy(anycclEvent_t event) {
  return guarded(nullptr, [&]() -> Status {
    if (event == nullptr) return {};
    if (event->destroyed) return need_event(event, "event");
    event->destroyed = true;
    bury(std::unique_ptr<anycclEvent>(event));
    return {};
  });
}

anycclResult_t anycclEventRecord(anycclEvent_t event, anycclStream_t stream) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_event(event, "event"));
    ANYCCL_CHECK(need_stream(stream));
    return event->event.record(*stream->stream);
  });
}

anycclResult_t anycclEventQuery(anycclEvent_t event) {
  bool done = false;
  const anycclResult_t result = guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_event(event, "event"));
    const std::shared_ptr<const Moment> moment = event->event.latest();
    done = moment == nullptr || moment->reached();
    return moment == nullptr || !done ? Status{} : moment->wait();
  });
  return unless_open(result, done);
}

anycclResult_t anycclEventSynchronize(anycclEvent_t event) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_event(event, "event"));
    const std::shared_ptr<const Moment> moment = event->event.latest();
    ANYCCL_CHECK(check_wait({.moment = moment.get()}));
    return moment == nullptr ? Status{} : moment->wait();
  });
}

anycclResult_t anycclEventSynchronizeFor(anycclEvent_t event, unsigned int timeout_ms) {
  bool done = true;
  const anycclResult_t result = guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_event(event, "event"));
    const std::shared_ptr<const Moment> moment = event->event.latest();
    ANYCCL_CHECK(check_wait({}));
    done = moment == nullptr || moment->wait_for(std::chrono::milliseconds(timeout_ms));
    return moment == nullptr || !done ? Status{} : moment->wait();
  });
  return unless_open(result, done);
}

anycclResult_t anycclEventElapsedTime(float* ms, anycclEvent_t start, anycclEvent_t end) {
  bool done = true;
  const anycclResult_t result = guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(ms, "ms"));
    ANYCCL_CHECK(need_event(start, "start"));
    ANYCCL_CHECK(need_event(end, "end"));
    const auto time = elapsed(start->event, end->event);
    done = time.status().code() != Code::in_progress;
    if (!time.ok()) return done ? time.status() : Status{};
    *ms = std::chrono::duration<float, std::milli>(*time).count();
    return {};
  });
  return unless_open(result, done);
}
