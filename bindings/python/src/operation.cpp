#include "operation.hpp"

#include <algorithm>
#include <utility>

#include "communicator.hpp"
#include "stream.hpp"

namespace anyccl::python {

Request::Extras& Request::extras_on_demand() {
  if (extras == nullptr) extras = std::make_unique<Extras>();
  return *extras;
}

anycclResult_t Request::launch(anycclComm_t comm, anycclStream_t stream) {
  if (is_other()) return extras->start(comm, stream);
  call.stream = stream;
  return anycclRun(&call, comm);
}

bool Operation::is_settled() {
  if (outcome) return true;
  if (work == nullptr) return end != nullptr && end->is_complete();
  int done = 0;
  static_cast<void>(anycclWorkTest(work, &done));
  return done != 0;
}

Work::Work(CommunicatorPtr comm, OperationPtr operation)
    : comm_(std::move(comm)), operation_(std::move(operation)) {}

Work::~Work() {
  if (operation_ == nullptr || complete_) return;
  if (is_exiting())
    new OperationPtr(std::move(operation_));  // its arrays stay until the process ends
  else
    comm_->adopt(std::move(operation_));
}

void Work::need_issued() const {
  if (operation_->in_open_group)
    raise(anycclInvalidUsage, "the group of this operation is still open: it starts at its end");
}

Outcome Operation::wait(Seconds timeout) {
  Outcome result = outcome.value_or(Outcome());
  if (outcome) return result;
  const bool done = wait_in_slices(timeout, [&](unsigned ms) {
    if (work == nullptr) return end->wait_for(ms);
    result = outcome_of(anycclWorkWaitFor(work, ms));
    return result.code != anycclInProgress;
  });
  if (!done) return {anycclInProgress, result.message};
  return end != nullptr && result.ok() ? stream->status() : result;
}

bool Operation::writes_into(const Array& copied) const {
  const auto is_written = [&](const Array& array) { return copied.shares_bytes_with(array); };
  if (is_written(request.result.array())) return true;
  return request.extras != nullptr &&
         std::any_of(request.extras->arrays.begin(), request.extras->arrays.end(), is_written);
}

void IssuedOperations::finish_writers(const Array& array, const Stream* stream) const {
  const std::vector<std::weak_ptr<Operation>> all = all_;  // others may add to it
  for (const std::weak_ptr<Operation>& one : all) {
    const OperationPtr earlier = one.lock();
    if (earlier == nullptr || !earlier->writes_into(array)) continue;
    if (stream == nullptr || earlier->stream.get() != stream)
      static_cast<void>(earlier->wait(std::nullopt));
  }
}

void IssuedOperations::copy_inputs(const Request& request, Stream* stream) const {
  std::vector<const Array*> copies;
  if (request.input.origin != nullptr) copies.push_back(&request.input);
  if (request.extras != nullptr)
    for (const Array& array : request.extras->arrays)
      if (array.origin != nullptr) copies.push_back(&array);
  for (const Array* const copy : copies) {
    finish_writers(*copy, stream);
    if (stream == nullptr)
      copy->copy_again();
    else
      stream->run(
          nb::borrow<nb::callable>(nb::cpp_function([again = *copy] { again.copy_again(); })));
  }
}

void IssuedOperations::add(const OperationPtr& operation) {
  all_.push_back(operation);
  if (all_.size() < many_) return;
  std::erase_if(all_, [](const std::weak_ptr<Operation>& one) { return one.expired(); });
  many_ = std::max<std::size_t>(64, 2 * all_.size());
}

nb::object Work::wait(Seconds timeout) {
  need_issued();
  const Outcome outcome = operation_->wait(timeout);
  if (outcome.code == anycclInProgress) {
    const auto whom = outcome.message.find(": ");  // behind "the operation is not complete yet"
    raise(anycclInProgress, "the operation is not complete after " + std::to_string(*timeout) +
                                " s; it goes on" +
                                (whom == std::string::npos ? "" : outcome.message.substr(whom)));
  }
  complete();
  raise_unless_ok(outcome);
  return operation_->request.result.take();
}

/// Marks it complete and lets go of its input. Raises the failure of an operator's function, which
/// the library does not know of.
void Work::complete() {
  complete_ = true;
  operation_->request.input = {};
  comm_->check_operators();
}

Outcome Work::ask_outcome() {
  Operation& operation = *operation_;
  if (operation.in_open_group) return {};
  if (operation.outcome) {
    complete_ = true;
    return *operation.outcome;
  }
  int done = 0;
  Outcome outcome = unlocked([&] {
    if (operation.work != nullptr) return anycclWorkTest(operation.work, &done);
    done = operation.end->is_complete() ? 1 : 0;
    return anycclSuccess;
  });
  if (done != 0 && operation.work == nullptr) outcome = operation.stream->status();
  complete_ = complete_ || done != 0;
  return outcome;
}

bool Work::test() {
  const Outcome outcome = ask_outcome();
  if (complete_) comm_->check_operators();
  raise_unless_ok(outcome);
  return complete_;
}

bool Work::done() {
  static_cast<void>(ask_outcome());
  return complete_;
}

int Work::source() {
  need_issued();
  int rank = 0;
  raise_unless_ok(unlocked([&] { return anycclWorkSource(operation_->work, &rank); }));
  return rank;
}

void Work::set_limit(Seconds seconds) {
  need_issued();
  const unsigned ms = milliseconds(seconds);
  if (operation_->outcome) return;
  if (operation_->work == nullptr)
    raise(anycclUnsupported, "an operation of a group in a stream takes its limit from its call");
  raise_unless_ok(unlocked([&] { return anycclWorkLimit(operation_->work, ms); }));
}

}  // namespace anyccl::python
