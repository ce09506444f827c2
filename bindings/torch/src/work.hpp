#pragma once
// c10d::Work, which torch gives to programs.

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "operation.hpp"

namespace anyccl::torch {

/// The work of a blocking call, complete on return.
class DoneWork final : public c10d::Work {
 public:
  DoneWork(int rank, c10d::OpType type, const char* title,
           const std::optional<std::vector<at::Tensor>>& inputs, std::uint64_t sequence, bool timed,
           at::TensorList outputs)
      : Work(rank, type, title, inputs),
        sequence_(sequence),
        timed_(timed),
        outputs_(outputs.begin(), outputs.end()) {
    if (timed) begun_ = std::chrono::steady_clock::now();
  }

  void end();
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  bool wait(std::chrono::milliseconds) override {
    synchronize();  // torch forgets it
    return true;
  }
  std::vector<at::Tensor> result() override { return {outputs_.begin(), outputs_.end()}; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  float getDuration() const override;
  std::uint64_t getSequencenumber() const override { return sequence_; }

 private:
  const std::uint64_t sequence_;
  const bool timed_;
  const c10::SmallVector<at::Tensor, 1> outputs_;
  std::chrono::steady_clock::time_point begun_, ended_;
};

/// The work of a call that returned at once. `owner`: nothing else will ask for `operation`.
class PendingWork final : public c10d::Work {
 public:
  PendingWork(int rank, c10d::OpType type, const char* title,
              const std::optional<std::vector<at::Tensor>>& inputs, std::uint64_t sequence,
              bool timed, std::shared_ptr<Operation> operation, bool owner,
              std::vector<at::Tensor> outputs);
  ~PendingWork() override;

  bool isCompleted() override { return operation_->poll(); }
  bool isSuccess() const override;
  std::exception_ptr exception() const override { return operation_->error(); }
  int sourceRank() const override { return operation_->source(); }
  /// Returns the outputs; throws if the operation is not complete.
  std::vector<at::Tensor> result() override;
  bool wait(std::chrono::milliseconds timeout) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  float getDuration() const override;
  std::uint64_t getSequencenumber() const override { return sequence_; }

  /// The moment of its completion matters.
  bool observed() const { return profiled_ || timed_; }

 private:
  const std::uint64_t sequence_;
  const bool timed_;
  const std::shared_ptr<Operation> operation_;
  const bool owner_;
  bool profiled_ = false;
  const std::vector<at::Tensor> outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // mutex_ of the base
};

/// Returns a future of tensors on these devices, beside those of the CPU.
c10::intrusive_ptr<c10::ivalue::Future> future_of_tensors(std::vector<c10::Device> devices = {});

/// What threads coalesce: between start() and take(), the operations of a thread are parts of one.
/// Calls of other threads beside it are calls of their own.
class Coalescing {
 public:
  struct Part {
    std::shared_ptr<Operation> operation;
    std::vector<at::Tensor> outputs;
  };
  /// What an earlier start() of this thread has left is abandoned: an exception kept the program
  /// from its end.
  void start();
  /// Adds a part if this thread coalesces, and returns whether it does.
  bool add(const std::shared_ptr<Operation>& operation, at::TensorList outputs);
  /// What this thread has coalesced; absent: it does not.
  std::optional<std::vector<Part>> take();
  /// Nobody coalesces any more, and nothing else is called meanwhile.
  void clear();

 private:
  std::vector<Part>* parts_of_this_thread();

  std::map<std::thread::id, std::vector<Part>> parts_;
  std::mutex mutex_;
  std::atomic<int> threads_ = 0;
};

}  // namespace anyccl::torch
