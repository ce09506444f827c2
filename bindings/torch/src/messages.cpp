// Point to point, and the barrier that names missing ranks.

#include "arguments.hpp"
#include "backend.hpp"
#include "errors.hpp"

namespace anyccl::torch {
namespace {

using c10d::OpType;

}  // namespace

Backend::WorkPtr Backend::message(Job& job, const at::Tensor& tensor, bool sends, int peer,
                                  int tag) {
  if (peer != ANYCCL_ANY_SOURCE && (peer < 0 || peer >= size_))
    refuse(job.name(),
           "rank " + std::to_string(peer) + " is not in this group of " + std::to_string(size_));
  if (tag < 0)
    refuse(job.name(),
           "tag " + std::to_string(tag) + " is not in 0.." + std::to_string(ANYCCL_MAX_TAG));
  anycclCall_t& call = job.add_call(sends ? anycclCollSend : anycclCollRecv, tensor.scalar_type());
  call.count = units(tensor);
  call.timeout_ms = 0;  // the limit counts during wait()
  call.root = peer;
  call.tag = tag;
  if (sends)
    call.sendbuff = job.memory.input(tensor);
  else
    call.recvbuff = job.memory.output(tensor);
  return start(job, tensor, tensor);
}

Backend::WorkPtr Backend::send(Tensors& tensors, int to, int tag) {
  Job job("anyccl:send", OpType::SEND, options_->timeout, true, &open_);
  return message(job, check_single(job.name(), tensors), true, to, tag);
}

Backend::WorkPtr Backend::recv(Tensors& tensors, int from, int tag) {
  Job job("anyccl:recv", OpType::RECV, options_->timeout, true, &open_);
  const at::Tensor& tensor = check_single(job.name(), tensors);
  if (from < 0) refuse(job.name(), "invalid source rank: " + std::to_string(from));
  return message(job, tensor, false, from, tag);
}

Backend::WorkPtr Backend::recvAnysource(Tensors& tensors, int tag) {
  Job job("anyccl:recvAnySource", OpType::RECVANYSOURCE, options_->timeout, true, &open_);
  return message(job, check_single(job.name(), tensors), false, ANYCCL_ANY_SOURCE, tag);
}

// Through the store and not the communicator: it must work when that has failed, and tell late
// ranks from dead ones.
void Backend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  using std::chrono::milliseconds;
  const milliseconds timeout = timeout_of(opts.timeout);
  const auto key = [this](std::uint64_t barrier, const std::string& what) {
    return "anyccl/monitored/" + core_->group.round + "/" + std::to_string(barrier) + "/" + what;
  };
  const std::uint64_t number = barrier_sequence_++;
  const std::string answer = key(number, "answer");
  const std::vector<std::uint8_t> yes{1}, no{0};
  const std::string me = "Rank " + std::to_string(rank_);
  const auto alive = [this](int peer) {
    return [this, peer] { comm().check_alive("monitoredBarrier", peer); };
  };
  if (rank_ != 0) {
    store_->set(key(number, std::to_string(rank_)), yes);
    const auto until = deadline_after(std::max(timeout, options_->timeout));
    const bool answered = wait_for(*store_, answer, until, alive(0));
    if (!answered || store_->get(answer) != yes)
      throw_backend_error(
          "anyccl: monitoredBarrier: " + me +
          " successfully reached monitoredBarrier, but received errors while waiting for "
          "send/recv from rank 0. Please check rank 0 logs for faulty rank." +
          (answered ? "" : " It has said nothing in time."));
    return;
  }

  const auto fail = [&](const std::string& text) {
    store_->set(answer, no);
    throw_backend_error("anyccl: monitoredBarrier: " + text);
  };
  const auto deadline = deadline_after(timeout);
  std::vector<int> missing;
  for (int rank = 1; rank < size_; ++rank) {
    if (!wait_all_ranks && Clock::now() >= deadline)
      fail(me + " timed out in monitoredBarrier after " + std::to_string(timeout.count()) +
           " ms.\nThe next rank to wait for was " + std::to_string(rank) + ".");
    if (wait_for(*store_, key(number, std::to_string(rank)), deadline, alive(rank))) continue;
    missing.push_back(rank);
    if (!wait_all_ranks)
      fail("[Rank 0]: Rank " + std::to_string(rank) + " failed to pass monitoredBarrier in " +
           std::to_string(timeout.count()) + " ms");
  }
  if (!missing.empty()) {
    std::string names;
    for (const int rank : missing) names += (names.empty() ? "" : ", ") + std::to_string(rank);
    fail("[Rank 0]: Ranks " + names + " failed to pass monitoredBarrier in " +
         std::to_string(timeout.count()) + " ms");
  }
  store_->set(answer, yes);
  // All ranks are here, so they have read the earlier answers.
  for (; barriers_forgotten_ < number; ++barriers_forgotten_) {
    delete_key(*store_, key(barriers_forgotten_, "answer"));
    for (int rank = 1; rank < size_; ++rank)
      delete_key(*store_, key(barriers_forgotten_, std::to_string(rank)));
  }
}

}  // namespace anyccl::torch
