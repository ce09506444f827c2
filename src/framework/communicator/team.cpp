#include "framework/communicator/team.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "framework/communicator/comm_report.hpp"
#include "framework/communicator/planning.hpp"
#include "framework/communicator/shutdown.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kCacheLine = 64;     // slices are cut here: no two threads write one line
constexpr std::size_t kLeastSlice = 8192;  // less is not worth a thread: docs/adr/0019

/// One slice, by a look at the count. Elements have at most 16 bytes.
bool is_small(const Call& call) {
  return call.count < kLeastSlice && call.count * bytes_of(call.dtype) < 2 * kLeastSlice;
}

/// Returns the bytes of each slice; the last one may have less, and there may be fewer than
/// threads. `bytes` is at least kLeastSlice, and so is the result.
std::size_t slice_bytes(std::size_t bytes, int threads) {
  const std::size_t slices = std::min(bytes / kLeastSlice, static_cast<std::size_t>(threads));
  return ((bytes + slices - 1) / slices + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace

Status Team::run(Call call, int thread, int threads) {
  ANYCCL_CHECK(first_->failure());
  ANYCCL_CHECK(check_team(thread, threads));
  if (is_small(call)) return thread == 0 ? first_->run(call) : Status();
  ANYCCL_CHECK(Planning(*first_).check_whole(call));
  const std::size_t element = bytes_of(call.dtype), bytes = call.count * element;
  const std::size_t slice = slice_bytes(bytes, threads);
  const std::size_t begin = std::min(bytes, static_cast<std::size_t>(thread) * slice);
  const std::size_t end = std::min(bytes, begin + slice);
  if (begin == end) return {};
  call.input += begin;
  call.output += begin;
  call.count = (end - begin) / element;
  call.threads = static_cast<std::uint16_t>(threads);
  return thread == 0 ? first_->run(call) : others_[static_cast<std::size_t>(thread) - 1]->run(call);
}

Status Team::check_team(int thread, int threads) const {
  if (threads < 1 || threads > size())
    return error(Code::invalid_usage,
                 "threads is {}, but this communicator is ready for {}: call anycclCommParts first",
                 threads, size());
  if (thread < 0 || thread >= threads)
    return error(Code::invalid_argument, "thread {} is not in 0..{}", thread, threads - 1);
  return {};
}

void Team::add(std::shared_ptr<Comm> comm) {
  const std::lock_guard lock(mutex_);
  comm->operators().copy(first_->operators());  // and add_operator() keeps them equal
  others_.push_back(std::move(comm));
}

std::vector<std::shared_ptr<Comm>> Team::all() const {
  std::vector<std::shared_ptr<Comm>> all{first_};
  const std::lock_guard lock(mutex_);
  all.insert(all.end(), others_.begin(), others_.end());
  return all;
}

bool Team::end(const Status& why) {
  const std::vector<std::shared_ptr<Comm>> comms = all();
  const auto has_failed = [](const std::shared_ptr<Comm>& comm) { return !comm->failure().ok(); };
  if (std::none_of(comms.begin(), comms.end(), has_failed)) return false;
  for (const auto& comm : comms)
    if (!has_failed(comm)) comm->abort(why);
  return true;
}

Result<ReduceOp> Team::add_operator(const Operator& op) {
  if (first_->forked()) return first_->failure();
  const std::lock_guard lock(mutex_);
  ANYCCL_TRY(const ReduceOp handle, first_->operators().add(op));
  for (const auto& comm : others_) comm->operators().add_as(handle, op);
  return handle;
}

Status Team::remove_operator(ReduceOp handle) {
  // Others have what calls look up in the first one.
  return first_->forked() ? first_->failure() : first_->operators().remove(handle);
}

Status Team::dump(const std::string& path) const {
  const std::vector<std::shared_ptr<Comm>> comms = all();  // which what is dumped belongs to
  std::vector<Dump> dumps;
  for (const auto& comm : comms) {
    ANYCCL_TRY(Dump dump, CommReport(*comm).dump());
    dumps.push_back(std::move(dump));
  }
  return write_whole_file(path, text_of(dumps));
}

std::string Team::metrics_text() const {
  Metrics sum;
  for (const auto& comm : all()) {
    const std::optional<Metrics> metrics =
        CommReport(*comm).metrics();  // without a deadline it comes
    sum.calls.add(metrics->calls);
    sum.completed += metrics->completed;
    sum.memory_bytes += metrics->memory_bytes;
    sum.has_failed = sum.has_failed || metrics->has_failed;
  }
  return text_of(sum, first_->membership());
}

void Team::abort(const Status& why) {
  for (const auto& comm : all()) comm->abort(why);
}

Status Team::finish(Deadline deadline) {
  Status first;
  for (const auto& comm : all())
    if (Status ended = Shutdown(*comm).finish(deadline); first.ok()) first = std::move(ended);
  return first;
}

}  // namespace anyccl
