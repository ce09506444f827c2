#include "stream.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "communicator.hpp"

namespace anyccl::python {

struct Stream::Failures {
  /// Each exception has the text of the library's error beside it.
  std::vector<std::pair<std::string, nb::object>> raised;
};

namespace {

// The stream whose function this thread runs.
thread_local const Stream::Failures* inside = nullptr;

struct Function {
  nb::object callable;
  std::shared_ptr<Stream::Failures> failures;

  /// What it raised, as text; empty if it returned.
  std::string call() {
    const Stream::Failures* const outer = std::exchange(inside, failures.get());
    PyObject* const returned = PyObject_CallNoArgs(callable.ptr());
    inside = outer;
    if (returned != nullptr) {
      Py_DECREF(returned);
      return {};
    }
    const nb::python_error raised;
    std::string text = nb::cast<std::string>(nb::str(raised.type().attr("__name__"))) + ": " +
                       nb::str(raised.value()).c_str();
    failures->raised.emplace_back(text, nb::borrow(raised.value()));
    return text;
  }
};

/// Calls and deletes `argument`, a Function, in the thread of the stream; throws the text of what
/// that raised.
void run_function(void* argument) {
  auto* const function = static_cast<Function*>(argument);
  std::string raised;
  auto body = [&] {
    try {
      raised = function->call();
    } catch (const std::exception& e) {  // not what the function raised, but how that was kept
      raised = e.what();
    }
    delete function;  // which has Python objects
  };
  with_interpreter(body);
  if (!raised.empty()) throw std::runtime_error(raised);  // an error of the stream
}

}  // namespace

Stream::Stream() : failures_(std::make_shared<Failures>()) {
  raise_unless_ok(outcome_of(anycclStreamCreate(&handle_)));
}

Stream::~Stream() {
  if (!is_exiting()) static_cast<void>(anycclStreamDestroy(handle_));
}

EventPtr Stream::record_end() {
  auto event = std::make_shared<Event>();
  event->record(*this);
  return event;
}

void Stream::synchronize(Seconds timeout) {
  if (inside == failures_.get())
    raise(anycclInvalidUsage, "a function in a stream cannot wait for its own stream");
  if (unlocked([&] { return anycclStreamQuery(handle_); }).code != anycclSuccess) {
    const EventPtr last = record_end();
    if (!wait_in_slices(timeout, [&](unsigned ms) { return last->wait_for(ms); }))
      raise(anycclInProgress, "the stream is not done after " + std::to_string(*timeout) + " s");
  }
  for (const std::weak_ptr<Communicator>& one : std::exchange(used_, {}))
    if (const CommunicatorPtr comm = one.lock()) {
      comm->drop_complete_operations(true);
      comm->check_operators();
    }
  raise_failure(status());
}

Outcome Stream::status() const {
  Outcome outcome = unlocked([&] { return anycclStreamQuery(handle_); });
  return outcome.code == anycclInProgress ? Outcome() : outcome;
}

bool Stream::query() {
  const Outcome outcome = unlocked([&] { return anycclStreamQuery(handle_); });
  if (outcome.code == anycclInProgress) return false;
  raise_failure(outcome);
  return true;
}

bool Stream::done() {
  return unlocked([&] { return anycclStreamQuery(handle_); }).code != anycclInProgress;
}

void Stream::raise_failure(const Outcome& outcome) const {
  const auto has = [&](std::string_view text) {
    return outcome.code == anycclInvalidUsage && outcome.message.find(text) != std::string::npos;
  };
  const bool unknown = has("a function in a stream threw something");  // another C++ runtime
  for (const auto& [text, exception] : failures_->raised)
    if (unknown || has(text)) raise_object(exception);
  raise_unless_ok(outcome);
}

void Stream::run(nb::callable function) {
  auto made = std::make_unique<Function>(Function{std::move(function), failures_});
  raise_unless_ok(
      unlocked([&] { return anycclLaunchHostFunc(handle_, run_function, made.get()); }));
  static_cast<void>(made.release());
}

void Stream::wait_event(anycclEvent_t event) {
  raise_unless_ok(unlocked([&] { return anycclStreamWaitEvent(handle_, event); }));
}

void Stream::note_use(const CommunicatorPtr& comm) {
  const auto same = [&](const std::weak_ptr<Communicator>& one) { return one.lock() == comm; };
  if (std::none_of(used_.begin(), used_.end(), same)) used_.push_back(comm);
}

Event::Event() {
  raise_unless_ok(outcome_of(anycclEventCreate(&handle_)));
}

void Event::record(Stream& stream) {
  raise_unless_ok(unlocked([&] { return anycclEventRecord(handle_, stream.handle()); }));
  stream_ = stream.shared_from_this();
}

Outcome Event::status() const {
  return unlocked([&] { return anycclEventQuery(handle_); });
}

bool Event::query() const {
  const Outcome outcome = status();
  if (outcome.code == anycclInProgress) return false;
  if (stream_ != nullptr) stream_->raise_failure(outcome);
  raise_unless_ok(outcome);
  return true;
}

bool Event::done() const {
  return status().code != anycclInProgress;
}

void Event::synchronize(Seconds timeout) const {
  const StreamPtr stream = stream_;
  if (!wait_in_slices(timeout, [&](unsigned ms) { return wait_for(ms); }))
    raise(anycclInProgress, "the event is not complete after " + std::to_string(*timeout) + " s");
  const Outcome outcome = status();
  if (stream != nullptr) stream->raise_failure(outcome);
  raise_unless_ok(outcome);
}

float Event::elapsed_time(const Event& end) const {
  float ms = 0;
  raise_unless_ok(unlocked([&] { return anycclEventElapsedTime(&ms, handle_, end.handle_); }));
  return ms;
}

}  // namespace anyccl::python
