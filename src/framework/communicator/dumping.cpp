// Dumps of a communicator: on demand, after a failure, and in long waits.

#include <algorithm>
#include <exception>

#include "base/log.hpp"
#include "base/whole_file.hpp"
#include "framework/communicator/communicator.hpp"
#include "framework/communicator/dump.hpp"
#include "framework/communicator/queued_collective.hpp"

namespace anyccl {
namespace {

OpenWait wait_of(const Execution& execution) {
  OpenWait wait{execution.record_number(), execution.sequence(), execution.place(), {}};
  execution.awaited(wait.awaited);
  std::sort(wait.awaited.begin(), wait.awaited.end());
  wait.awaited.erase(std::unique(wait.awaited.begin(), wait.awaited.end()), wait.awaited.end());
  return wait;
}

OpenWait wait_of(const Operation& message) {
  OpenWait wait{message.is_recorded() ? message.record_number() : 0, 0, message.what(), {}};
  message.awaited(wait.awaited);
  return wait;
}

}  // namespace

/// By the holder of the progress lock.
std::string Comm::dump_text(std::string_view reason) const {
  Dump dump{reason, me_, routes_, recorder_, sequence_, {}, failure_.why()};
  if (alone_->execution.is_recorded()) dump.waits.push_back(wait_of(alone_->execution));
  if (!collectives_.empty() && collectives_.front()->started)
    dump.waits.push_back(wait_of(collectives_.front()->execution));
  for (const std::shared_ptr<Operation>& message : messages_.waiting())
    if (!message->done()) dump.waits.push_back(wait_of(*message));
  return dump.text();
}

/// By the holder of the progress lock. A dump that cannot be written is no failure of the program.
void Comm::dump_by_itself(std::string_view reason) try {
  if (me_.dump_folder.empty()) return;
  const std::string path =
      fmt::format("{}/anyccl-{}-{}.json", me_.dump_folder, me_.id, index(me_.rank));
  const Status written = write_whole_file(path, dump_text(reason));
  if (written.ok() || std::exchange(has_no_dump_, true)) return;
  log(LogLevel::warn, "{}: no dump, see ANYCCL_DUMP_DIR: {}", me_.label, written.message());
} catch (const std::exception& problem) {
  log(LogLevel::warn, "{}: no dump: {}", me_.label, problem.what());
}

Status Comm::dump(const std::string& path) {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  const std::string text = dump_text("call");
  progress_lock.unlock();
  return write_whole_file(path, text);
}

}  // namespace anyccl
