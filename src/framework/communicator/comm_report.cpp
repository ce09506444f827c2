#include "framework/communicator/comm_report.hpp"

#include <utility>
#include <vector>

#include "framework/communicator/comm_memory.hpp"
#include "framework/communicator/survivors.hpp"

namespace anyccl {

Result<Dump> CommReport::dump() {
  if (comm_.forked()) return comm_.failure();
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  Dump dump = dump_here("call");
  progress_lock.unlock();  // to put long traces into words takes seconds
  comm_.records_.write_trace(dump.calls);
  return dump;
}

void CommReport::dump_on_signal(Deadline deadline) {
  if (comm_.forked()) return;
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  if (comm_.loop_.lock(progress_lock, deadline))
    comm_.records_.write_dump([&] { return dump_here("signal"); });
}

Dump CommReport::dump_here(std::string_view reason) const {
  const CollectiveQueue& queue = comm_.queue_;
  std::vector<OpenWait> waits;
  if (const Execution* const alone = queue.running_alone()) waits.push_back(wait_of(*alone));
  if (const Execution* const first = queue.running()) waits.push_back(wait_of(*first));
  for (const std::shared_ptr<Operation>& message : comm_.messages_.waiting())
    if (!message->done()) waits.push_back(wait_of(*message));
  return comm_.records_.dump(reason, queue.sequence(), comm_.failure_.why(), std::move(waits));
}

std::optional<Metrics> CommReport::metrics(Deadline deadline) {
  if (comm_.forked()) return Metrics();
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  if (!comm_.loop_.lock(progress_lock, deadline)) return std::nullopt;
  return Metrics{SpentCalls(comm_.records_.recorder()), Survivors(comm_).completed_here(),
                 CommMemory(comm_).bytes_here(), comm_.failure_.happened()};
}

}  // namespace anyccl
