#include "framework/communicator/probing.hpp"

#include "base/error.hpp"

namespace anyccl {
namespace {

/// look() may be all that a rank ever calls, so it looks for failures, too.
constexpr std::chrono::milliseconds kLookEvery{1};

}  // namespace

Status Probing::check(Rank source) const {
  if (comm_.failure_.happened()) return comm_.failure();
  if (source == kAnySource || (index(source) >= 0 && index(source) < comm_.me_.size)) return {};
  return error(Code::invalid_argument,
               "source {} is neither a rank of this communicator of {} nor ANYCCL_ANY_SOURCE",
               index(source), comm_.me_.size);
}

Status Probing::wait(Rank source, std::uint32_t tag, Deadline deadline, MessageFacts& found) {
  if (comm_.forked()) return comm_.failure();
  const std::shared_ptr<Comm> alive =
      comm_.weak_from_this().lock();  // should another thread abort it
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  ANYCCL_CHECK(check(source));
  const auto probe = std::make_shared<Probe>(source, tag);
  if (!deadline.is_never()) probe->limit(Operation::kNoLimit);
  Call what;
  what.root = source;
  what.tag = tag;
  const std::uint64_t number = comm_.records_.recorder().add(
      what, RecordState::running, {.position = tag, .other = OtherKind::probe});
  probe->record_in(comm_.records_.recorder(), number);
  comm_.note_wait(*probe);
  comm_.messages_.add(probe);
  Status status = comm_.loop_.wait(progress_lock, *probe, deadline);
  if (!progress_lock.owns_lock()) comm_.loop_.lock(progress_lock);
  comm_.messages_.remove(probe);
  if (!probe->done()) comm_.records_.recorder().end(number, status.code() == Code::in_progress);
  if (status.ok()) found = probe->message();
  if (status.code() == Code::in_progress)
    return error(Code::in_progress, "no such message has come yet");
  return status;
}

Result<bool> Probing::look(Rank source, std::uint32_t tag, MessageFacts& found) {
  if (comm_.forked()) return comm_.failure();
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  return look_locked(source, tag, found);
}

/// Makes progress once and looks; from time to time it also looks for failures. For the holder of
/// the progress lock.
Result<bool> Probing::look_locked(Rank source, std::uint32_t tag, MessageFacts& found) {
  ANYCCL_CHECK(check(source));
  const auto probe = std::make_shared<Probe>(source, tag);
  comm_.messages_.add(probe);
  if (comm_.advance()) comm_.loop_.ring();
  const auto now = std::chrono::steady_clock::now();
  if (!probe->done() && now - comm_.probed_ > kLookEvery) {
    comm_.probed_ = now;
    comm_.diagnose();
  }
  comm_.messages_.remove(probe);
  if (!probe->done()) return false;
  ANYCCL_CHECK(probe->status());
  found = probe->message();
  return true;
}

Result<std::shared_ptr<Operation>> Probing::receive(const MessageFacts& message, std::byte* out) {
  if (comm_.forked()) return comm_.failure();
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  MessageFacts next;
  ANYCCL_TRY(const bool is_there, look_locked(message.source, message.tag, next));
  if (!is_there || next.dtype != message.dtype || next.count != message.count)
    return std::shared_ptr<Operation>();
  Call call;
  call.collective = Collective::recv;
  call.dtype = message.dtype;
  call.root = message.source;
  call.tag = message.tag;
  call.count = message.count;
  call.output = out;
  ANYCCL_CHECK(comm_.ready(call));
  std::shared_ptr<Operation> receive = comm_.add_message(call, Gate::open);
  comm_.advance();
  return receive;
}

}  // namespace anyccl
