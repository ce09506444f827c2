// Probes: what message would a receive get?

#include "base/error.hpp"
#include "framework/communicator/communicator.hpp"

namespace anyccl {
namespace {

/// probe_now() may be all that a rank ever calls, so it looks for failures, too.
constexpr std::chrono::milliseconds kLookEvery{1};

}  // namespace

Status Comm::check_probe(Rank source) const {
  if (failure_.happened()) return failure();
  if (source == kAnySource || (index(source) >= 0 && index(source) < me_.size)) return {};
  return error(Code::invalid_argument,
               "source {} is neither a rank of this communicator of {} nor ANYCCL_ANY_SOURCE",
               index(source), me_.size);
}

Status Comm::probe(Rank source, std::uint32_t tag, Deadline deadline, MessageFacts& found) {
  if (forked()) return failure();
  const std::shared_ptr<Comm> alive = weak_from_this().lock();  // should another thread abort it
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  ANYCCL_CHECK(check_probe(source));
  const auto probe = std::make_shared<Probe>(source, tag);
  if (!deadline.is_never()) probe->limit(Operation::kNoLimit);
  Call what;
  what.root = source;
  what.tag = tag;
  const std::uint64_t number =
      recorder_.add(what, RecordState::running, {.position = tag, .other = OtherKind::probe});
  probe->record_in(recorder_, number);
  note_wait(*probe);
  messages_.add(probe);
  Status status = loop_.wait(progress_lock, *probe, deadline);
  if (!progress_lock.owns_lock()) loop_.lock(progress_lock);
  messages_.remove(probe);
  if (!probe->done()) recorder_.end(number, status.code() == Code::in_progress);
  if (status.ok()) found = probe->message();
  if (status.code() == Code::in_progress)
    return error(Code::in_progress, "no such message has come yet");
  return status;
}

Result<bool> Comm::probe_now(Rank source, std::uint32_t tag, MessageFacts& found) {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  return look_for(source, tag, found);
}

/// Looks once; for the holder of the progress lock.
Result<bool> Comm::look_for(Rank source, std::uint32_t tag, MessageFacts& found) {
  ANYCCL_CHECK(check_probe(source));
  const auto probe = std::make_shared<Probe>(source, tag);
  messages_.add(probe);
  if (advance()) loop_.ring();
  const auto now = std::chrono::steady_clock::now();
  if (!probe->done() && now - probed_ > kLookEvery) {
    probed_ = now;
    diagnose();
  }
  messages_.remove(probe);
  if (!probe->done()) return false;
  ANYCCL_CHECK(probe->status());
  found = probe->message();
  return true;
}

Result<std::shared_ptr<Operation>> Comm::receive_found(const MessageFacts& message,
                                                       std::byte* out) {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  MessageFacts next;
  ANYCCL_TRY(const bool is_there, look_for(message.source, message.tag, next));
  if (!is_there || next.dtype != message.dtype || next.count != message.count)
    return std::shared_ptr<Operation>();
  Call call;
  call.collective = Collective::recv;
  call.dtype = message.dtype;
  call.root = message.source;
  call.tag = message.tag;
  call.count = message.count;
  call.output = out;
  ANYCCL_CHECK(ready(call));
  std::shared_ptr<Operation> receive = add_message(call, Gate::open);
  advance();
  return receive;
}

}  // namespace anyccl
