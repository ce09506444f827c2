#pragma once
// The C++ interface: values instead of exceptions, handles that free themselves. Header-only over
// the C interface (anyccl.h), whose rules on threads, order and errors hold here too.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "anyccl/anyccl.h"
#include "anyccl/status.hpp"
#include "anyccl/stream.hpp"
#include "anyccl/types.hpp"
#include "anyccl/view.hpp"

namespace anyccl {

/// An operation that was issued. Dropping it does not stop it; its buffers belong to it until it is
/// complete. Any thread.
class [[nodiscard]] Work {
 public:
  Work() = default;
  explicit Work(anycclWork_t handle) : handle_(handle) {}
  Work(Work&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Work& operator=(Work&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() { static_cast<void>(anycclWorkFree(handle_)); }

  /// Whether it is complete; makes progress, never blocks. Errors: those of the operation.
  Result<bool> test() {
    int done = 0;
    const Status status = detail::status_of(anycclWorkTest(handle_, &done));
    if (!status.ok()) return status;
    return done != 0;
  }
  /// Returns when it is complete, with what became of it.
  Status wait() { return detail::status_of(anycclWorkWait(handle_)); }
  /// The same, but in_progress if it is not complete after `milliseconds`: it goes on then.
  Status wait_for(unsigned milliseconds) {
    return detail::status_of(anycclWorkWaitFor(handle_, milliseconds));
  }
  /// In place of the time limit of its call; 0: none. Counts from now, or from its turn.
  Status limit(unsigned milliseconds) {
    return detail::status_of(anycclWorkLimit(handle_, milliseconds));
  }
  /// Of a complete recv: whom the message came from.
  Result<Rank> source() const {
    int rank = 0;
    const Status status = detail::status_of(anycclWorkSource(handle_, &rank));
    if (!status.ok()) return status;
    return Rank{rank};
  }
  anycclWork_t handle() const { return handle_; }

 private:
  anycclWork_t handle_ = nullptr;
};

/// Waits for what an operation returned: `Status s = wait(comm.all_reduce(...))`.
inline Status wait(Result<Work> work) {
  return work.ok() ? work->wait() : work.status();
}

/// Names the communicator that ranks join; pass it to them in any safe way. See anycclGetUniqueId.
class UniqueId {
 public:
  static Result<UniqueId> create() {
    UniqueId id;
    const Status status = detail::status_of(anycclGetUniqueId(&id.value_));
    if (!status.ok()) return status;
    return id;
  }
  UniqueId() = default;
  explicit UniqueId(const anycclUniqueId& value) : value_(value) {}
  const anycclUniqueId& value() const { return value_; }

 private:
  anycclUniqueId value_{};
};

/// Sends counts[j] elements from offset displs[j] to (or receives them from) rank j; in elements.
struct BlockLayout {
  std::span<const std::size_t> counts, displs;
};

/// One rank's handle of a communicator.
///
/// Threads: any, but destroy() comes when no other thread is in a call. Operations come in the same
///          order on every rank.
/// Order:   operations return at once with a Work. With a stream they start after earlier work in
///          it, and later work in it sees the result; nobody needs to wait for the Work then. But
///          collectives of a communicator run in the order of the calls, whatever their streams,
///          and so do messages of one peer and direction.
class Communicator {
 public:
  /// Joins as `rank` of `size`. Errors: timeout naming the missing ranks, invalid_argument,
  /// system_error.
  static Result<Communicator> from_unique_id(const UniqueId& id, Rank rank, int size) {
    return made([&](anycclComm_t* comm) {
      return anycclCommInitRank(comm, size, id.value(), index(rank));
    });
  }
  /// The same without waiting for the others: it can be used when ready() says so.
  static Result<Communicator> begin_from_unique_id(const UniqueId& id, Rank rank, int size) {
    return made([&](anycclComm_t* comm) {
      anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      const anycclResult_t result =
          anycclCommInitRankConfig(comm, size, id.value(), index(rank), &config);
      return result == anycclInProgress ? anycclSuccess : result;
    });
  }
  /// Joins what the launcher's environment describes (`anyccl run`, torchrun).
  static Result<Communicator> from_env() {
    return made([](anycclComm_t* comm) { return anycclCommInitEnv(comm); });
  }
  /// All `size` ranks of one communicator in this process; element r is rank r.
  static Result<std::vector<Communicator>> init_all(int size) {
    std::vector<anycclComm_t> handles(static_cast<std::size_t>(size > 0 ? size : 0));
    const Status status = detail::status_of(anycclCommInitAll(handles.data(), size, nullptr));
    if (!status.ok()) return status;
    std::vector<Communicator> comms;
    for (anycclComm_t handle : handles) comms.push_back(Communicator(handle));
    return comms;
  }

  Communicator() = default;
  Communicator(Communicator&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Communicator& operator=(Communicator&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Ends the communicator without waiting for a peer; prefer destroy(), which completes what was
  /// issued.
  ~Communicator() { static_cast<void>(anycclCommDestroy(handle_)); }

  Rank rank() const {
    int rank = 0;
    static_cast<void>(anycclCommUserRank(handle_, &rank));
    return Rank{rank};
  }
  int size() const {
    int size = 0;
    static_cast<void>(anycclCommCount(handle_, &size));
    return size;
  }
  anycclComm_t handle() const { return handle_; }

  /// Collective: ranks with the same color (>= 0) form a new communicator, ordered by (key, rank).
  /// With ANYCCL_SPLIT_NOCOLOR the result has a null handle().
  Result<Communicator> split(int color, int key) {
    Communicator part;
    const Status status =
        detail::status_of(anycclCommSplit(handle_, color, key, &part.handle_, nullptr), handle_);
    if (!status.ok()) return status;
    return part;
  }

  /// Reduces `in` over all ranks; every rank gets the result in `out`, bitwise the same.
  ///
  /// Shapes: in.count == out.count (elements), equal on all ranks, as are dtype and op. `out` may
  ///         be `in`; any other overlap is an error.
  /// Errors: invalid_argument, unsupported (dtype or op). What fails later is in the Work.
  Result<Work> all_reduce(View in, View out, ReduceOp op, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollAllReduce, in, out, stream);
    call.op = static_cast<anycclRedOp_t>(op);
    return issue(call, in, out);
  }
  /// Collective, once, by one thread of each rank: up to `threads` threads may be in
  /// all_reduce_part(). See anycclCommParts.
  Status make_parts(int threads) {
    return detail::status_of(anycclCommParts(handle_, threads), handle_);
  }
  /// all_reduce() by a team of `threads` threads in each rank, inside the program's own parallel
  /// region: each calls it with its number `thread` and else equal arguments, waits only for the
  /// threads of its number, and returns when its slice of `out` is complete. The barrier behind the
  /// region makes the rest visible. See anycclAllReducePart for slices, order, threads and errors.
  Status all_reduce_part(View in, View out, ReduceOp op, int thread, int threads) {
    if (const Status same = compare(in, out); !same.ok()) return same;
    return detail::status_of(anycclAllReducePart(
        in.data, out.data, in.count, static_cast<anycclDataType_t>(in.dtype),
        static_cast<anycclRedOp_t>(op), handle_, thread, threads));  // the thread's own error
  }
  /// `out` on every rank becomes `in` of `root`; `in` is read only there and may be `out`.
  Result<Work> broadcast(View in, View out, Rank root, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollBroadcast, in, out, stream);
    call.root = index(root);
    return issue(call, in, out);
  }
  /// `out` of `root` becomes the reduction of all ranks' `in`; `out` is used only there.
  ///
  /// Shapes: as all_reduce; elsewhere than at the root `out` may be empty.
  Result<Work> reduce(View in, View out, ReduceOp op, Rank root, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollReduce, in, out, stream);
    call.op = static_cast<anycclRedOp_t>(op);
    call.root = index(root);
    return rank() == root ? issue(call, in, out) : issue(call);
  }
  /// `out` becomes the reduction of the `in` of the ranks up to and with this one (MPI's inclusive
  /// prefix). All operators but avg.
  ///
  /// Shapes: as all_reduce.
  Result<Work> scan(View in, View out, ReduceOp op, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollScan, in, out, stream);
    call.op = static_cast<anycclRedOp_t>(op);
    return issue(call, in, out);
  }
  /// The same of the ranks before this one. On rank 0 `out` is not used and may be empty.
  Result<Work> exscan(View in, View out, ReduceOp op, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollExscan, in, out, stream);
    call.op = static_cast<anycclRedOp_t>(op);
    return rank() == Rank{0} ? issue(call) : issue(call, in, out);
  }
  /// `out` becomes the reduction of all ranks' block of `in` for this rank.
  ///
  /// Shapes: in.count == size() * out.count. `out` may be block rank() of `in`.
  Result<Work> reduce_scatter(View in, View out, ReduceOp op, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollReduceScatter, in, out, stream);
    call.op = static_cast<anycclRedOp_t>(op);
    return issue_blocks(call, in, out);
  }
  /// `out` becomes every rank's `in`, in rank order.
  ///
  /// Shapes: out.count == size() * in.count. `in` may be block rank() of `out`.
  Result<Work> all_gather(View in, View out, const Stream& stream = {}) {
    return issue_blocks(make(anycclCollAllGather, in, out, stream), out, in);
  }
  /// The same at `root` only; elsewhere `out` is not used and may be empty.
  Result<Work> gather(View in, View out, Rank root, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollGather, in, out, stream);
    call.root = index(root);
    return rank() == root ? issue_blocks(call, out, in) : issue(call);
  }
  /// `out` becomes block rank() of `in` of `root`; elsewhere `in` is not used and may be empty.
  ///
  /// Shapes: at the root, in.count == size() * out.count, and `out` may be block `root` of `in`.
  Result<Work> scatter(View in, View out, Rank root, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollScatter, in, out, stream);
    call.root = index(root);
    call.count = out.count;
    call.datatype = static_cast<anycclDataType_t>(out.dtype);
    return rank() == root ? issue_blocks(call, in, out) : issue(call);
  }
  /// Block j of `in` goes to rank j; block i of `out` comes from rank i.
  ///
  /// Shapes: in.count == out.count, a multiple of size(). `out` may be `in`.
  Result<Work> all_to_all(View in, View out, const Stream& stream = {}) {
    const auto n = static_cast<std::size_t>(size());
    if (in.count % n != 0)
      return Status(Code::invalid_argument, "all_to_all: " + std::to_string(in.count) +
                                                " elements are not equal blocks for " +
                                                std::to_string(n) + " ranks");
    anycclCall_t call = make(anycclCollAllToAll, in, out, stream);
    call.count = in.count / n;
    return issue(call, in, out);
  }
  /// Sends sent.counts[j] elements at in[sent.displs[j]] to rank j and receives received.counts[j]
  /// from it at out[received.displs[j]]. All four spans have size() entries; what i sends to j is
  /// what j receives from i. Not in place.
  Result<Work> all_to_all_v(View in, BlockLayout sent, View out, BlockLayout received,
                            const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollAllToAllv, in, out, stream);
    call.count = 0;
    return issue_v(call, sent, received);
  }
  /// all_gather of blocks of different sizes: out[received.displs[r]] becomes the `in` of rank r.
  ///
  /// Shapes: received.counts[r] is the in.count of rank r, equal on all ranks, as is dtype. `in`
  ///         may be its block of `out`.
  Result<Work> all_gather_v(View in, View out, BlockLayout received, const Stream& stream = {}) {
    return issue_v(make(anycclCollAllGatherv, in, out, stream), {}, received);
  }
  /// reduce_scatter of blocks of different sizes: `out` becomes the reduction of all ranks' block
  /// for this rank.
  ///
  /// Shapes: sent.counts[rank()] == out.count; sent.counts are equal on all ranks, as are dtype and
  ///         op. `out` may be its block of `in`.
  Result<Work> reduce_scatter_v(View in, BlockLayout sent, View out, ReduceOp op,
                                const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollReduceScatterv, in, out, stream);
    call.count = out.count;
    call.op = static_cast<anycclRedOp_t>(op);
    return issue_v(call, sent, {});
  }
  /// gather of blocks of different sizes. `out` and `received` are used only at `root`, where
  /// received.counts[r] is the in.count of rank r; elsewhere they may be empty.
  Result<Work> gather_v(View in, View out, BlockLayout received, Rank root,
                        const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollGatherv, in, out, stream);
    call.root = index(root);
    return rank() == root ? issue_v(call, {}, received) : issue(call);
  }
  /// scatter of blocks of different sizes. `in` and `sent` are used only at `root`, where
  /// sent.counts[r] is the out.count of rank r; elsewhere they may be empty.
  Result<Work> scatter_v(View in, BlockLayout sent, View out, Rank root,
                         const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollScatterv, in, out, stream);
    call.root = index(root);
    call.count = out.count;
    call.datatype = static_cast<anycclDataType_t>(out.dtype);
    return rank() == root ? issue_v(call, sent, {}) : issue(call);
  }
  /// Complete when all ranks have called it.
  Result<Work> barrier(const Stream& stream = {}) {
    return issue(make(anycclCollBarrier, {}, {}, stream));
  }

  /// Messages between two ranks with the same tag match in order; count and dtype are equal on both
  /// sides. Neither waits for collectives. `from` may be kAnySource: see Work::source().
  Result<Work> send(View data, Rank to, const Stream& stream = {}, int tag = 0) {
    anycclCall_t call = make(anycclCollSend, data, {}, stream);
    call.root = index(to);
    call.tag = tag;
    return issue(call);
  }
  Result<Work> recv(View data, Rank from, const Stream& stream = {}, int tag = 0) {
    anycclCall_t call = make(anycclCollRecv, data, data, stream);
    call.sendbuff = nullptr;
    call.root = index(from);
    call.tag = tag;
    return issue(call);
  }
  /// Issues what the call says, whose `size` is set; for what the functions above do not have, such
  /// as a time limit.
  Result<Work> issue(const anycclCall_t& call) {
    anycclWork_t work = nullptr;
    const Status status = detail::status_of(anycclIssue(&call, handle_, &work), handle_);
    if (!status.ok()) return status;
    return Work(work);
  }

  /// An operator that sums each rank's input times its `factor`, for calls of that type. See
  /// anycclRedOpCreatePreMulSum.
  template <typename T>
  Result<ReduceOp> create_pre_mul_sum(T factor) {
    anycclRedOp_t op{};
    const Status status = detail::status_of(
        anycclRedOpCreatePreMulSum(&op, &factor, static_cast<anycclDataType_t>(dtype_of<T>()),
                                   anycclScalarHostImmediate, handle_),
        handle_);
    if (!status.ok()) return status;
    return static_cast<ReduceOp>(op);
  }
  /// An operator that calls `function` with `data`. See anycclRedOpCreate.
  Result<ReduceOp> create_operator(anycclReduceFunction_t function, void* data = nullptr) {
    anycclRedOp_t op{};
    const Status status =
        detail::status_of(anycclRedOpCreate(&op, function, data, handle_), handle_);
    if (!status.ok()) return status;
    return static_cast<ReduceOp>(op);
  }
  Status destroy_operator(ReduceOp op) {
    return detail::status_of(anycclRedOpDestroy(static_cast<anycclRedOp_t>(op), handle_), handle_);
  }

  /// Ok, or why the communicator has failed. Any thread.
  Status failure() const {
    anycclResult_t error = anycclSuccess;
    static_cast<void>(anycclCommGetAsyncError(handle_, &error));
    return detail::status_of(error, handle_);
  }
  /// False while it is being created or finalized in the background. Errors: why that failed.
  Result<bool> ready() const {
    const Status now = failure();
    if (now.code() == Code::in_progress) return false;
    if (!now.ok()) return now;
    return true;
  }
  /// Completes what was issued and takes leave; after that it can only be destroyed. One that was
  /// begun without waiting does not wait here either: ready() says when it is done.
  Status finalize() {
    const Status status = detail::status_of(anycclCommFinalize(handle_), handle_);
    return status.code() == Code::in_progress ? Status{} : status;
  }
  /// Completes what was issued, then frees the handle.
  Status destroy() { return detail::status_of(anycclCommDestroy(std::exchange(handle_, nullptr))); }
  /// Makes all ranks' operations fail, then frees the handle. Never waits for a peer.
  Status abort() { return detail::status_of(anycclCommAbort(std::exchange(handle_, nullptr))); }

 private:
  explicit Communicator(anycclComm_t handle) : handle_(handle) {}
  template <typename Init>
  static Result<Communicator> made(const Init& init) {
    Communicator comm;
    const Status status = detail::status_of(init(&comm.handle_));
    if (!status.ok()) return status;
    return comm;
  }
  static anycclCall_t make(anycclCollective_t what, const View& in, const View& out,
                           const Stream& stream) {
    anycclCall_t call{};
    call.size = sizeof call;
    call.collective = what;
    call.sendbuff = in.data;
    call.recvbuff = out.data;
    call.count = in.count;
    call.datatype = static_cast<anycclDataType_t>(in.dtype);
    call.stream = stream.handle();
    return call;
  }
  static Status compare(const View& in, const View& out) {
    if (in.count == out.count && in.dtype == out.dtype) return {};
    return Status(Code::invalid_argument, "the views have " + std::to_string(in.count) + " and " +
                                              std::to_string(out.count) +
                                              " elements, or other types");
  }
  Result<Work> issue(const anycclCall_t& call, const View& in, const View& out) {
    if (const Status same = compare(in, out); !same.ok()) return same;
    return issue(call);
  }
  /// `blocks` has size() blocks as large as `block`.
  Result<Work> issue_blocks(anycclCall_t call, const View& blocks, const View& block) {
    if (blocks.count != block.count * static_cast<std::size_t>(size()) ||
        blocks.dtype != block.dtype)
      return Status(Code::invalid_argument, "the views have " + std::to_string(blocks.count) +
                                                " and " + std::to_string(block.count) +
                                                " elements on " + std::to_string(size()) +
                                                " ranks, or other types");
    call.count = block.count;
    return issue(call);
  }
  /// Of the sides that have blocks here.
  Result<Work> issue_v(anycclCall_t call, const BlockLayout& sent, const BlockLayout& received) {
    for (const BlockLayout* side : {&sent, &received})
      for (const auto& entries : {side->counts, side->displs})
        if (entries.data() != nullptr && entries.size() != static_cast<std::size_t>(size()))
          return Status(Code::invalid_argument, "counts and displs have " +
                                                    std::to_string(entries.size()) +
                                                    " entries instead of one for each of " +
                                                    std::to_string(size()) + " ranks");
    call.sendcounts = sent.counts.data(), call.sdispls = sent.displs.data();
    call.recvcounts = received.counts.data(), call.rdispls = received.displs.data();
    return issue(call);
  }
  anycclComm_t handle_ = nullptr;
};

}  // namespace anyccl

#include "anyccl/requests.hpp"
