#pragma once
// The c10d::Backend: torch's operations, each as calls of the library.

#include <sys/types.h>

#include <forward_list>
#include <memory>
#include <optional>
#include <thread>

#include "executor.hpp"
#include "join/rendezvous.hpp"
#include "shared_comm.hpp"
#include "tensors.hpp"
#include "torch.hpp"
#include "work.hpp"

namespace anyccl::torch {

/// One operation of torch on its way: it is filled in, then started.
struct Job {
  Job(const char* title_, c10d::OpType type_, std::chrono::milliseconds timeout_, bool async_,
      OpenOperations* earlier)
      : title(title_), type(type_), timeout(timeout_), async(async_), memory(earlier) {}
  /// The title without its "anyccl:".
  const char* name() const { return title + 7; }
  /// One more call, of elements of `type`.
  anycclCall_t& add_call(anycclCollective_t collective, c10::ScalarType type);
  /// The configuration of the last call alone, which is made if it has none.
  anycclCollConfig_t& config_of(anycclCall_t& call);
  /// The result of the last call has another type.
  void set_result_type(anycclCall_t& call, c10::ScalarType type);

  const char* const title;  // as profilers show it, but for Options::profiled_as
  const c10d::OpType type;
  const std::chrono::milliseconds timeout;
  const bool async;
  c10::Device device = c10::kCPU;  // of all its tensors
  Memory memory;
  c10::SmallVector<anycclCall_t, 1> calls;
  std::forward_list<anycclCollConfig_t> configs;  // of calls
  at::Tensor factor;                              // of PREMUL_SUM
};

/// The operations in progress of a group, which must end before the interpreter does.
struct Core {
  /// Completes the issued operations and leaves the group; aborts those longer than `timeout`, and
  /// all if `meanwhile` throws, which is called now and then.
  void close(
      std::chrono::milliseconds timeout, const std::function<void()>& meanwhile = [] {});

  const pid_t process;  // a forked child has nothing to close
  const JoinedGroup group;
  const std::shared_ptr<Executor> executor = std::make_shared<Executor>();
};

class Backend final : public c10d::Backend {
 public:
  struct Options final : c10d::Backend::Options {
    explicit Options(std::chrono::milliseconds timeout_ = kBackendDefaultTimeout)
        : c10d::Backend::Options("anyccl", timeout_) {}
    // Where torch's logger of DDP looks for ProcessGroupGloo's, if the group is called gloo.
    std::vector<std::shared_ptr<void>> devices;
    int threads = 2;
    std::string profiled_as = "anyccl";  // before the colon in what torch's profiler shows
    Numbers numbers;
  };

  /// Joins the group, unless `options` leave that to reconfigure(); returns when all ranks have, or
  /// throws after the timeout, naming those that are missing.
  Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
          c10::intrusive_ptr<Options> options);
  /// Over a group that has met already.
  Backend(JoinedGroup group, const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
          c10::intrusive_ptr<Options> options);
  /// Closes it, and aborts the operations that take longer than a second.
  ~Backend() override;

  const std::string getBackendName() const override { return "anyccl"; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return options_; }
  bool supportsCoalescing() const override { return true; }
  bool supportsSplitting() const override { return true; }
  bool supportsShrinking() const ANYCCL_TORCH_SHRINKS { return true; }
  void setTimeout(std::chrono::milliseconds timeout) override { options_->timeout = timeout; }

  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  /// all_reduce whose input has several parts; see leaves of anycclCollConfig_t.
  WorkPtr all_reduce_leaves(at::Tensor& output, at::Tensor& input, int leaves,
                            const c10d::AllreduceOptions& opts);
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& opts) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& opts) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& opts) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& opts) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& opts) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& opts) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& opts) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& opts) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                        std::vector<std::int64_t>& output_split,
                        std::vector<std::int64_t>& input_split,
                        const c10d::AllToAllOptions& opts) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override;
  WorkPtr barrier(const c10d::BarrierOptions& opts) override;
  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) override;

  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

  void startCoalescing() override { coalescing_.start(); }
  WorkPtr endCoalescing() override;

  void setSequenceNumberForGroup() override {}  // all ranks begin with 0
  std::uint64_t getSequenceNumberForGroup() override { return sequence_.load(); }
  void enableCollectivesTiming() override { timed_ = true; }

  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
      const c10::intrusive_ptr<c10d::Backend::Options>& opts) override;
  c10::intrusive_ptr<c10d::Backend> merge(const c10::intrusive_ptr<c10d::Store>& store,
                                          const c10::intrusive_ptr<c10d::Backend::Options>& opts,
                                          const int& rank, const int& size) override;

  /// torch.distributed.shrink_group: of the ranks that are not excluded, which all call it. With
  /// its SHRINK_ABORT after a failure: then all ranks that are gone must be among the excluded
  /// ones, or it throws and may be called again.
  c10::intrusive_ptr<c10d::Backend> shrink(
      const std::vector<std::int64_t>& ranks_to_exclude, int shrink_flags,
      const c10::intrusive_ptr<c10d::Backend::Options>& opts_override) ANYCCL_TORCH_SHRINKS;
  struct LeftOver {
    c10::intrusive_ptr<Backend> backend;
    std::vector<int> gone;  // ranks of this group
  };
  /// Makes a group of the ranks that are left after a failure, which all call it: they agree who
  /// they are.
  LeftOver carry_on(const std::vector<int>& excluded);
  /// From here on. Before the group is used.
  void use_store(c10::intrusive_ptr<c10d::Store> store) { store_ = std::move(store); }

#ifdef C10D_BACKEND_HAS_RECONFIGURE  // torch 2.14
  bool supportsReconfigure() const override {
    return true;
  }
  /// For others that are to be in a group with this rank; whoever has it can join, so keep it
  /// secret.
  c10d::ReconfigureHandle get_reconfigure_handle() const override;
  /// Leaves the group, whose operations end, and joins one of the ranks with these handles, of
  /// which its own must be one; of a set, in the order of their texts. Returns when all have come;
  /// throws after the timeout. Nothing else may be called meanwhile.
  c10::intrusive_ptr<c10d::Work> reconfigure(const c10d::ReconfigureOptions& opts) override;
#endif

  void abort() override;
  /// Completes the issued operations and leaves the group; aborts those that peers have not joined
  /// after half a minute, or the timeout of the group if that is shorter, or when a signal raises.
  void shutdown() override {
    core_->close(std::min<std::chrono::milliseconds>(options_->timeout, std::chrono::seconds{30}),
                 check_signals);
  }
  c10d::ErrorType getError() override;
  /// Writes what this rank remembers of its operations to a file; see anycclCommDump.
  void dump(const std::string& path);

  /// Shuts down all remaining backends, before the interpreter ends.
  static void close_all(std::chrono::milliseconds timeout);

 private:
  friend class ObjectExchange;
  static bool is_configured_later([[maybe_unused]] const Options& options) {
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    return options.enable_reconfigure;
#else
    return false;
#endif
  }
  /// Whether it has to end before the interpreter does.
  static void set_open(const std::shared_ptr<Core>& core, bool is_open);
  SharedComm& comm() const {
    return *core_->group.comm;
  }
  std::size_t ranks() const {
    return static_cast<std::size_t>(size_);
  }
  /// The options of a group that is made of this one; `given` may be null, or of another backend.
  c10::intrusive_ptr<Options> inherited_options(
      const c10::intrusive_ptr<c10d::Backend::Options>& given) const;
  /// The options of a group of some ranks of this one.
  c10::intrusive_ptr<Options> options_for(
      const std::vector<int>& ranks, const c10::intrusive_ptr<c10d::Backend::Options>& given) const;
  c10::intrusive_ptr<Backend> backend_over(
      std::shared_ptr<SharedComm> made, const std::vector<int>& ranks,
      const c10::intrusive_ptr<c10d::Backend::Options>& given) const;
  /// For the options of an operation.
  std::chrono::milliseconds timeout_of(std::chrono::milliseconds given) const {
    return given == c10d::kUnsetTimeout ? options_->timeout : given;
  }
  template <typename Opts>
  Job job(const char* title, c10d::OpType type, const Opts& opts) const {
    return Job(title, type, timeout_of(opts.timeout), opts.asyncOp, &open_);
  }
  /// `title`, an "anyccl:...", as profilers show it; null while there is none.
  const char* profiler_title(const char* title) const;
  void check_root(const Job& job, std::int64_t root) const;
  /// Sets the operator of the last call, and the type in which it sums, where the options have one.
  void set_operator(Job& job, const c10d::ReduceOp& op, c10::ScalarType type);

  // The calls of one pair of tensors.
  void add_all_gather(Job& job, const at::Tensor& output, const at::Tensor& input);
  void add_reduce_scatter(Job& job, const at::Tensor& output, const at::Tensor& input,
                          const c10d::ReduceOp& op);

  void separate_output(Job& job, const at::Tensor& output, anycclCall_t& call,
                       const Memory::Blocks& blocks);

  /// Issues `job` if it is async, else runs it to its end. The arrays in its calls are read before
  /// this returns, its tensors maybe later.
  WorkPtr start(Job& job, at::TensorList inputs, at::TensorList outputs);
  void run(Job& job, at::TensorList inputs, at::TensorList outputs);
  /// As run(), where calls may be in queues of the device: then its current stream waits, and not
  /// the caller.
  void run_in_stream(Job& job, at::TensorList inputs, at::TensorList outputs);
  std::shared_ptr<Operation> operation_of(Job& job, at::TensorList inputs, at::TensorList outputs);
  /// Adds one send or receive to `job`, and starts it.
  WorkPtr message(Job& job, const at::Tensor& tensor, bool sends, int peer, int tag);

  // In this order: torch's logger of DDP casts whatever is called gloo to ProcessGroupGloo, which
  // has a shared_ptr and then its options.
  std::shared_ptr<Core> core_;
  const c10::intrusive_ptr<Options> options_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::atomic<std::uint64_t> sequence_ = 0;  // of collectives
  std::atomic<bool> timed_ = false;

  WorkPtr meeting_;  // of all ranks, before they use queues of devices; null: none is under way

  mutable OpenOperations open_;
  Coalescing coalescing_;
  std::uint32_t sparse_sequence_ = 0;
  // Sparse sums that are under way, each with the tensor that gets it.
  std::vector<std::pair<const c10::TensorImpl*, c10::weak_intrusive_ptr<c10d::Work>>> sparse_open_;
  std::uint64_t barrier_sequence_ = 0, barriers_forgotten_ = 0;  // monitored ones
  // For the next group that this rank joins; as rank 0 it uses it up. Its owner is the one thread
  // that configures.
  mutable std::optional<anycclUniqueId> next_id_;
};

}  // namespace anyccl::torch
