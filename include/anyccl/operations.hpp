#pragma once
// The operations of communicators (communicator.hpp includes this).

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "anyccl/anyccl.h"
#include "anyccl/group.hpp"
#include "anyccl/status.hpp"
#include "anyccl/stream.hpp"
#include "anyccl/types.hpp"
#include "anyccl/view.hpp"
#include "anyccl/work.hpp"

namespace anyccl {

/// Sends counts[j] elements from offset displs[j] to (or receives them from) rank j; in elements.
struct BlockLayout {
  std::span<const std::size_t> counts, displs;
};
/// A BlockLayout with a type for each rank, and offsets in bytes.
struct TypedBlockLayout {
  std::span<const std::size_t> counts, displs;
  std::span<const DType> dtypes;
};

/// What a Communicator can do once it is created; use that.
///
/// Order:   calls that give a Work return at once, collectives when no other thread is in a split
///          or Sequence. With a stream they start after earlier work in it, and later work in it
///          sees the result. But collectives of a communicator run in the order of the calls,
///          whatever their streams, and so do sends to a peer, and receives of one peer and tag.
class Operations {
 public:
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

  /// The time limit of the operations that are called through this object from now on; 0, as at
  /// first: that of the communicator, see anycclConfig_t. When it is over the operation fails,
  /// and the communicator. Of a message it counts from its issue, of a collective from its turn.
  /// Not of issue(), issue_all(), and calls that give no Work. Not while other threads call.
  void set_timeout(std::chrono::milliseconds limit) { timeout_ms_ = detail::milliseconds(limit); }

  std::chrono::milliseconds timeout() const { return std::chrono::milliseconds(timeout_ms_); }

  /// From now on collectives that are called through this object have this configuration, which
  /// starts from ANYCCL_COLLCONFIG_INITIALIZER and is borrowed until the next call of this; null,
  /// as at first: none. Not those that set_timeout() leaves out. Not while other threads call.
  /// With leaves inputs of all_reduce, reduce and reduce_scatter are leaves / size() times as long.
  void set_call_config(const anycclCollConfig_t* config) { call_config_ = config; }

  /// Reduces `in` over all ranks; every rank gets the result in `out`, bitwise the same.
  ///
  /// Shapes: in.count == out.count (elements), equal on all ranks, as are dtypes and op. `out` may
  ///         be `in` if elements are as large; any other overlap is an error. Another out.dtype is
  ///         that of the sum, too, if wider, unless accumulateType is set: see anycclCollConfig_t.
  /// Errors: invalid_argument, unsupported (dtypes or op), among others; later ones: in the Work.
  Result<Work> all_reduce(View in, View out, ReduceOp op, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollAllReduce, in, out, stream);
    call.op = static_cast<anycclRedOp_t>(op);
    call.count = out.count;
    return issue_sum(call, in, out, out.count);
  }
  /// Collective, once, by one thread of each rank: up to `threads` threads may be in
  /// all_reduce_part(). See anycclCommParts.
  Status make_parts(int threads) {
    return detail::status_of(anycclCommParts(handle_, threads), handle_);
  }
  /// all_reduce() by a team of `threads` threads in each rank, inside the program's own parallel
  /// region: each calls it with its number `thread` and else equal arguments, waits for no thread
  /// of another number, and returns when its slice of `out` is complete. The barrier behind the
  /// region makes the rest visible. See anycclAllReducePart for slices, order, threads and errors.
  Status all_reduce_part(View in, View out, ReduceOp op, int thread, int threads) {
    if (const Status same = compare(in, out); !same.ok()) return same;
    return detail::status_of(anycclAllReducePart(
        in.data, out.data, in.count, static_cast<anycclDataType_t>(in.dtype),
        static_cast<anycclRedOp_t>(op), handle_, thread, threads));  // the thread's own error
  }
  /// `out` on every rank becomes `in` of `root`; `in` is read only there and may be `out`. Both are
  /// of one shape on every rank.
  Result<Work> broadcast(View in, View out, Rank root, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollBroadcast, in, out, stream);
    call.root = index(root);
    return issue(call, in, out);
  }
  /// `out` of `root` becomes the reduction of all ranks' `in`; `out` is used only there.
  ///
  /// Shapes: as all_reduce; elsewhere `out` may be 0 elements of `in`'s type, if the result has it.
  Result<Work> reduce(View in, View out, ReduceOp op, Rank root, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollReduce, in, out, stream);
    call.op = static_cast<anycclRedOp_t>(op);
    call.root = index(root);
    call.count = in.count / parts();
    if (rank() != root && out.count != call.count && in.count % parts() == 0) return issue(call);
    return issue_sum(call, in, out, out.count);
  }
  /// `out` becomes the reduction of the `in` of the ranks up to and with this one (MPI's inclusive
  /// prefix). All operators but avg. Shapes: as all_reduce, but of one dtype.
  Result<Work> scan(View in, View out, ReduceOp op, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollScan, in, out, stream);
    call.op = static_cast<anycclRedOp_t>(op);
    return issue(call, in, out);
  }
  /// scan() of the ranks before this one. On rank 0 `out` is not used and may be empty.
  Result<Work> exscan(View in, View out, ReduceOp op, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollExscan, in, out, stream);
    call.op = static_cast<anycclRedOp_t>(op);
    return rank() == Rank{0} ? issue(call) : issue(call, in, out);
  }
  /// `out` becomes the reduction of all ranks' block of `in` for this rank.
  ///
  /// Shapes: in.count == size() * out.count. `out` may be block rank() of `in`. Types: as all_reduce.
  Result<Work> reduce_scatter(View in, View out, ReduceOp op, const Stream& stream = {}) {
    anycclCall_t call = make(anycclCollReduceScatter, in, out, stream);
    call.op = static_cast<anycclRedOp_t>(op);
    call.count = out.count;
    return issue_sum(call, in, out, out.count * static_cast<std::size_t>(size()));
  }
  /// `out` becomes every rank's `in`, in rank order.
  ///
  /// Shapes: out.count == size() * in.count. `in` may be block rank() of `out`.
  Result<Work> all_gather(View in, View out, const Stream& stream = {}) {
    return issue_blocks(make(anycclCollAllGather, in, out, stream), out, in);
  }
  /// all_gather() at `root` only; elsewhere `out` is not used and may be empty.
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
    if (n > 0 && in.count % n != 0)
      return detail::refused(Code::invalid_argument, "all_to_all: " + std::to_string(in.count) +
                                                         " elements are not equal blocks for " +
                                                         std::to_string(n) + " ranks");
    anycclCall_t call = make(anycclCollAllToAll, in, out, stream);
    call.count = n > 0 ? in.count / n : 0;  // without ranks issue() says why
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
  /// all_to_all_v with a type for each pair, equal at both ends, and offsets in bytes. Without a
  /// stream and group() it returns when complete, in the communicator's limit. See anycclAllToAllw.
  Status all_to_all_w(std::span<const std::byte> in, const TypedBlockLayout& sent,
                      std::span<std::byte> out, const TypedBlockLayout& received,
                      const Stream& stream = {}) {
    for (const TypedBlockLayout* side : {&sent, &received})
      for (const std::size_t entries :
           {side->counts.size(), side->displs.size(), side->dtypes.size()})
        if (const Status one = check_entries(entries); !one.ok()) return one;
    const auto types = [](std::span<const DType> dtypes) {
      std::vector<anycclDataType_t> all;
      for (const DType one : dtypes) all.push_back(static_cast<anycclDataType_t>(one));
      return all;
    };
    return detail::status_of(
        anycclAllToAllw(in.data(), sent.counts.data(), sent.displs.data(),
                        types(sent.dtypes).data(), out.data(), received.counts.data(),
                        received.displs.data(), types(received.dtypes).data(), handle_,
                        stream.handle()),
        handle_);
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
  /// Issues what the call says, whose `size` is set; for what the functions above do not have. In a
  /// group() it becomes a part of that.
  Result<Work> issue(const anycclCall_t& call) {
    anycclWork_t work = nullptr;
    const anycclResult_t result = detail::open_group == nullptr ? anycclIssue(&call, handle_, &work)
                                                                : anycclRun(&call, handle_);
    const Status status = detail::status_of(result, handle_);
    if (!status.ok()) return status;
    return Work(work);
  }
  /// Issues all calls, in their order, without streams: as a group, whose small collectives travel
  /// as one where they can. Not inside a group(). Errors: the first one; the others go on without a
  /// Work, but none was issued with a stream or an impossible size, collective, tag or config.
  Result<std::vector<Work>> issue_all(std::span<const anycclCall_t> calls) {
    if (const Status free = check_no_group("issue_all", "issue"); !free.ok()) return free;
    std::vector<anycclWork_t> handles(calls.size());
    const Status status = detail::status_of(
        anycclIssueAll(calls.data(), calls.size(), handle_, handles.data()), handle_);
    std::vector<Work> works;
    for (const anycclWork_t handle : handles) works.emplace_back(handle);
    if (!status.ok()) return status;
    return works;
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
  /// MPI's MAXLOC and MINLOC: of vectors of ValueIndex<T> the largest or least value with the least
  /// index that has it; a NaN wins. See anycclRedOpCreateLoc.
  template <typename T>
  Result<ReduceOp> create_max_loc() {
    return create_loc<T>(anycclMax);
  }
  template <typename T>
  Result<ReduceOp> create_min_loc() {
    return create_loc<T>(anycclMin);
  }
  Status destroy_operator(ReduceOp op) {
    return detail::status_of(anycclRedOpDestroy(static_cast<anycclRedOp_t>(op), handle_), handle_);
  }

  /// reduce_local() that also takes operators of this communicator, but no pre-multiplied sums.
  Status reduce_local(View in, View inout, ReduceOp op) {
    if (const Status same = compare(in, inout); !same.ok()) return same;
    return detail::status_of(
        anycclReduceLocal(in.data, inout.data, in.count, static_cast<anycclDataType_t>(in.dtype),
                          static_cast<anycclRedOp_t>(op), handle_),
        handle_);
  }

 protected:
  Operations() = default;
  ~Operations() = default;
  Operations(const Operations&) = default;
  Operations& operator=(const Operations&) = default;
  explicit Operations(anycclComm_t handle) : handle_(handle) {}

  static Status check_no_group(const char* what, const char* instead) {
    if (detail::open_group == nullptr) return {};
    return detail::refused(Code::invalid_usage, std::string(what) +
                                                    ": there is no value before the group ends; " +
                                                    instead + "() can be in a group");
  }

  detail::CommHandle handle_;
  unsigned timeout_ms_ = 0;
  const anycclCollConfig_t* call_config_ = nullptr;

 private:
  template <typename T>
  Result<ReduceOp> create_loc(anycclRedOp_t which) {
    static_assert(sizeof(ValueIndex<T>) == 2 * sizeof(T));
    anycclRedOp_t op{};
    const Status status = detail::status_of(
        anycclRedOpCreateLoc(&op, which, static_cast<anycclDataType_t>(dtype_of<T>()), handle_),
        handle_);
    if (!status.ok()) return status;
    return static_cast<ReduceOp>(op);
  }
  anycclCall_t make(anycclCollective_t what, const View& in, const View& out,
                    const Stream& stream) const {
    anycclCall_t call{};
    call.size = sizeof call;
    call.collective = what;
    call.sendbuff = in.data;
    call.recvbuff = out.data;
    call.count = in.count;
    call.datatype = static_cast<anycclDataType_t>(in.dtype);
    call.stream = stream.handle();
    call.timeout_ms = timeout_ms_;
    if (what != anycclCollSend && what != anycclCollRecv) call.config = call_config_;
    return call;
  }
  static Status compare(const View& in, const View& out) {
    if (in.count == out.count && in.dtype == out.dtype) return {};
    return detail::refused(Code::invalid_argument, "the input has " + detail::described(in) +
                                                       " and the result " + detail::described(out) +
                                                       ": they must be equal");
  }
  Result<Work> issue(const anycclCall_t& call, const View& in, const View& out) {
    if (const Status same = compare(in, out); !same.ok()) return same;
    return issue(call);
  }
  /// How many the input of a sum has; see leaves of anycclCollConfig_t.
  std::size_t parts() const {
    const bool has_leaves =
        call_config_ != nullptr && call_config_->leaves != ANYCCL_CONFIG_UNDEF_INT;
    const int n = has_leaves ? size() : 0, each = n > 0 ? call_config_->leaves / n : 1;
    return each > 1 ? static_cast<std::size_t>(each) : 1;
  }
  /// `count`: what `in` has to have for each part, by `out`. The result has the type of `out`.
  Result<Work> issue_sum(anycclCall_t call, const View& in, const View& out, std::size_t count) {
    if (in.count != count * parts())
      return detail::refused(Code::invalid_argument,
                             "the input has " + detail::described(in) + " and the result " +
                                 detail::described(out) + " on " + std::to_string(size()) +
                                 " ranks: the input needs " + std::to_string(count * parts()));
    const bool says_type =
        call_config_ != nullptr && call_config_->outputType != ANYCCL_CONFIG_UNDEF_INT;
    if (in.dtype == out.dtype && !says_type) return issue(call);
    anycclCollConfig_t config =
        ANYCCL_COLLCONFIG_INITIALIZER;  // which is read before issue() returns
    if (call_config_ != nullptr) config = *call_config_;
    config.outputType = static_cast<int>(out.dtype);
    call.config = &config;
    return issue(call);
  }
  Status check_entries(std::size_t entries) const {
    if (entries == static_cast<std::size_t>(size())) return {};
    return detail::refused(Code::invalid_argument, "counts, displs or dtypes have " +
                                                       std::to_string(entries) +
                                                       " entries instead of one for each of " +
                                                       std::to_string(size()) + " ranks");
  }
  /// `blocks` has size() blocks as large as `block`.
  Result<Work> issue_blocks(anycclCall_t call, const View& blocks, const View& block) {
    if (blocks.count != block.count * static_cast<std::size_t>(size()) ||
        blocks.dtype != block.dtype)
      return detail::refused(Code::invalid_argument, "the views have " + detail::described(blocks) +
                                                         " and " + detail::described(block) +
                                                         ": one is a block for each of " +
                                                         std::to_string(size()) + " ranks");
    call.count = block.count;
    return issue(call);
  }
  /// Issues `call` with the sides that have blocks here.
  Result<Work> issue_v(anycclCall_t call, const BlockLayout& sent, const BlockLayout& received) {
    for (const BlockLayout* side : {&sent, &received})
      for (const auto& entries : {side->counts, side->displs})
        if (entries.data() != nullptr)
          if (const Status one = check_entries(entries.size()); !one.ok()) return one;
    call.sendcounts = sent.counts.data(), call.sdispls = sent.displs.data();
    call.recvcounts = received.counts.data(), call.rdispls = received.displs.data();
    return issue(call);
  }
};

}  // namespace anyccl
