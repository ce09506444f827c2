// Comm: an all_reduce that several threads of each rank do together, each in a communicator of its
// own.

#include <algorithm>

#include "base/error.hpp"
#include "framework/communicator.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kLine = 64;          // slices are cut here: no two threads write one line
constexpr std::size_t kLeastSlice = 8192;  // less is not worth a thread: docs/adr/0019

/// One slice, by a look at the count. Elements have at most 16 bytes.
bool is_small(const Call& call) {
  return call.count < kLeastSlice && call.count * bytes_of(call.dtype) < 2 * kLeastSlice;
}

/// Bytes of each slice; the last one may have less.
std::size_t slice_bytes(std::size_t bytes, int threads) {
  const std::size_t slices = std::min(bytes / kLeastSlice, static_cast<std::size_t>(threads));
  return ((bytes + slices - 1) / slices + kLine - 1) / kLine * kLine;
}

}  // namespace

Status Comm::run_part(Call call, int thread, int threads) {
  ANYCCL_CHECK(failure());
  ANYCCL_CHECK(check_team(thread, threads));
  if (is_small(call)) return thread == 0 ? run(call) : Status();
  ANYCCL_CHECK(check_whole(call));
  const std::size_t element = bytes_of(call.dtype), bytes = call.count * element;
  const std::size_t slice = slice_bytes(bytes, threads);
  const std::size_t begin = std::min(bytes, static_cast<std::size_t>(thread) * slice);
  const std::size_t end = std::min(bytes, begin + slice);
  if (begin == end) return {};
  call.input += begin;
  call.output += begin;
  call.count = (end - begin) / element;
  call.threads = threads;
  return thread == 0 ? run(call) : parts_[static_cast<std::size_t>(thread) - 1]->run(call);
}

Status Comm::check_team(int thread, int threads) const {
  if (threads < 1 || threads > most_threads())
    return error(Code::invalid_usage,
                 "threads is {}, but this communicator is ready for {}: call anycclCommParts first",
                 threads, most_threads());
  if (thread < 0 || thread >= threads)
    return error(Code::invalid_argument, "thread {} is not in 0..{}", thread, threads - 1);
  return {};
}

/// What run() cannot see of a slice.
Status Comm::check_whole(Call call) const {
  if (!exists(call.op)) call.op = ReduceOp::sum;  // created or wrong: run() sees, with the token
  return check_call(call);
}

void Comm::add_part(std::shared_ptr<Comm> part) {
  Token token(token_);
  take(token);
  part->operators_ = operators_;  // and add_operator() keeps them equal
  const std::lock_guard lock(failure_mutex_);
  parts_.push_back(std::move(part));
}

std::vector<std::shared_ptr<Comm>> Comm::parts() const {
  const std::lock_guard lock(failure_mutex_);
  return parts_;
}

bool Comm::end_parts(const Status& why) {
  std::vector<std::shared_ptr<Comm>> all = parts();
  all.push_back(shared_from_this());
  const auto has_failed = [](const std::shared_ptr<Comm>& comm) { return !comm->failure().ok(); };
  if (std::none_of(all.begin(), all.end(), has_failed)) return false;
  for (const auto& comm : all)
    if (!has_failed(comm)) comm->abort_alone(why);
  return true;
}

}  // namespace anyccl
