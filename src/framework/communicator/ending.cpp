// Comm: failures and aborts.

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "framework/communicator/comm_report.hpp"

namespace anyccl {

/// The caller holds the progress lock.
void Comm::fail(const Status& why) {
  if (!failure_.begin(why)) return;
  completed_ = queue_.count_completed();
  // Peers hear of it before any caller here does, whose memory they may be reading.
  for (Transport* t : routes_.transports) t->abort(why);
  for (Transport* t : routes_.transports) t->deliver_abort();
  // A caller that sees the failure finds the dump, with the operations that were open.
  records_.write_dump([&] { return CommReport(*this).dump_here("failure"); });
  if (!is_idle()) told_.store(true, std::memory_order_relaxed);
  failure_.end();
  log(LogSubsystem::init, "{}: {}", me_.names[uindex(me_.rank)], why.message());
  const Status status = failure_.why();
  queue_.end(status);
  messages_.end(status);
  records_.write_trace();
}

/// A call that this rank cannot make, for want of memory, must not leave its peers waiting in it.
Status Comm::fail_without_memory(const Call& call) {
  CallRecord record;
  record.collective = static_cast<std::uint8_t>(call.collective);
  record.dtype = static_cast<std::uint8_t>(call.dtype);
  record.op = static_cast<std::uint8_t>(call.op);
  record.root = index(call.root);
  record.count = call.count;
  abort(error(Code::system_error, "{} has no memory for a call: {}", me_.names[uindex(me_.rank)],
              describe(record)));
  return failure();
}

void Comm::check_peers() {
  if (forked()) return;
  loop_.diagnose();
  ProgressLock progress_lock = loop_.progress_lock();
  if (!progress_lock.try_lock() || failure_.happened() || !is_idle()) return;
  if (const Status bad = diagnosis_.reported(); !bad.ok()) fail(bad);
}

void Comm::abort(const Status& why) {
  if (forked()) return;  // the parent's peers are not ours
  failure_.ask(why);
  for (Transport* t : routes_.transports) t->abort(why);
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);  // its holder looks at the failure within milliseconds
  if (!failure_.happened()) fail(failure_.why());
}

void Comm::interrupt() {
  abort(error(Code::aborted, "{} was interrupted by its program while it waited",
              me_.names[uindex(me_.rank)]));
}

}  // namespace anyccl
