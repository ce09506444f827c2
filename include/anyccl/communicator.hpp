#pragma once
// Communicators and their operations (anyccl.hpp includes this).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "anyccl/anyccl.h"
#include "anyccl/group.hpp"
#include "anyccl/operations.hpp"
#include "anyccl/status.hpp"
#include "anyccl/types.hpp"

namespace anyccl {

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

/// How a communicator is created.
struct CommunicatorConfig {
  CommunicatorConfig() = default;
  /// A configuration of the C interface; the texts that it points to live as long as this is used.
  CommunicatorConfig(const anycclConfig_t& config)
      : blocking(config.blocking != 0), fields(config) {}

  /// In logs, dumps, traces and metrics; empty: fields.commName, or its parent's name, or none.
  std::string name{};
  /// False: creating and finalizing wait for no rank; Communicator::ready() says when it is done.
  bool blocking = true;
  /// All others.
  anycclConfig_t fields = ANYCCL_CONFIG_INITIALIZER;

  /// The configuration for the C interface; valid while this object is.
  anycclConfig_t c_config() const {
    anycclConfig_t config = fields;
    config.blocking = blocking ? 1 : 0;
    if (!name.empty()) config.commName = name.c_str();
    return config;
  }
};

/// One rank's handle of a communicator.
///
/// Threads: any, but finalize() and destroy() come when no other thread is in a call. Collectives
///          come in one order on every rank, messages in that of their pair, direction and tag.
/// Order:   that of its Operations.
class Communicator : public Operations {
 public:
  /// Joins as `rank` of `size`. Errors: timeout naming missing ranks if they are known, aborted,
  /// invalid_usage where ranks differ, remote_error, invalid_argument, system_error, unsupported.
  static Result<Communicator> from_unique_id(const UniqueId& id, Rank rank, int size,
                                             const CommunicatorConfig& config = {}) {
    return value_of("from_unique_id", "join", config,
                    [&](Communicator& comm) { return comm.join(id, rank, size, config); });
  }
  /// Begins to join without waiting for the others: it can be used when ready() says so.
  static Result<Communicator> begin_from_unique_id(const UniqueId& id, Rank rank, int size) {
    CommunicatorConfig config;
    config.blocking = false;
    return from_unique_id(id, rank, size, config);
  }
  /// from_unique_id() of a default one. In a group() one that blocks is created at its end, so that
  /// one thread may create several ranks; this object stays where it is until then.
  Status join(const UniqueId& id, Rank rank, int size, const CommunicatorConfig& config = {}) {
    return take("join", nullptr, [&](anycclComm_t* made) {
      anycclConfig_t c = config.c_config();
      return anycclCommInitRankConfig(made, size, id.value(), index(rank), &c);
    });
  }
  /// Joins what the launcher's environment describes (`anyccl run`, torchrun, mpirun, mpiexec,
  /// srun). See anycclCommInitEnvConfig.
  static Result<Communicator> from_env(const CommunicatorConfig& config = {}) {
    Communicator comm;
    anycclConfig_t c = config.c_config();
    const Status status = comm.take(
        "from_env", nullptr, [&](anycclComm_t* made) { return anycclCommInitEnvConfig(made, &c); });
    if (!status.ok()) return status;
    return comm;
  }
  /// All `size` ranks of one communicator in this process; element r is rank r.
  static Result<std::vector<Communicator>> init_all(int size) {
    std::vector<anycclComm_t> handles(static_cast<std::size_t>(std::clamp(size, 0, kLargestGroup)));
    const Status status = detail::status_of(anycclCommInitAll(handles.data(), size, nullptr));
    if (!status.ok()) return status;
    std::vector<Communicator> comms;
    for (anycclComm_t handle : handles) comms.push_back(Communicator(handle));
    return comms;
  }

  Communicator() = default;
  Communicator(Communicator&& other) noexcept : Operations(other) { other.handle_.take(); }
  Communicator& operator=(Communicator&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(timeout_ms_, other.timeout_ms_);
    std::swap(call_config_, other.call_config_);
    return *this;
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// As destroy(), so it completes what was issued; prefer destroy(), which says what went wrong.
  ~Communicator() { static_cast<void>(anycclCommDestroy(handle_)); }

  /// Collective: ranks with the same color (>= 0) form a new communicator, ordered by (key, rank).
  /// With ANYCCL_SPLIT_NOCOLOR the result has a null handle(), or, if it does not block, is
  /// finalized when it is ready. See anycclCommSplit.
  Result<Communicator> split(int color, int key, const CommunicatorConfig& config = {}) {
    return value_of("split", "split_into", config,
                    [&](Communicator& part) { return split_into(part, color, key, config); });
  }
  /// split() into `part`, a default one. In a group() one that blocks is made at its end, so that
  /// one thread may split several ranks; `part` stays where it is until then.
  Status split_into(Communicator& part, int color, int key, const CommunicatorConfig& config = {}) {
    return part.take("split_into", handle_, [&](anycclComm_t* made) {
      anycclConfig_t c = config.c_config();
      return anycclCommSplit(handle_, color, key, made, &c);
    });
  }

  /// A communicator of the ranks that are not in `excluded`, in their order; these make the call,
  /// the others do not. `flags`: ANYCCL_SHRINK_ABORT after a failure, without those that have gone.
  /// See anycclCommShrink.
  Result<Communicator> shrink(const std::vector<Rank>& excluded,
                              const CommunicatorConfig& config = {},
                              int flags = ANYCCL_SHRINK_DEFAULT) {
    return value_of("shrink", "shrink_into", config,
                    [&](Communicator& part) { return shrink_into(part, excluded, config, flags); });
  }
  /// shrink() into `part`; see split_into().
  Status shrink_into(Communicator& part, const std::vector<Rank>& excluded,
                     const CommunicatorConfig& config = {}, int flags = ANYCCL_SHRINK_DEFAULT) {
    std::vector<int> list;
    for (const Rank rank : excluded) list.push_back(index(rank));
    return part.take("shrink_into", handle_, [&](anycclComm_t* made) {
      anycclConfig_t c = config.c_config();
      return anycclCommShrink(handle_, list.data(), static_cast<int>(list.size()), made, &c, flags);
    });
  }
  /// How many collectives have completed, in the order of their calls.
  struct Completed {
    std::uint64_t here = 0;        ///< At this rank.
    std::uint64_t everywhere = 0;  ///< At all that are left after a failure.
  };
  /// See anycclCommCompleted.
  Result<Completed> completed() const {
    Completed completed;
    const Status status = detail::status_of(
        anycclCommCompleted(handle_, &completed.here, &completed.everywhere), handle_);
    if (!status.ok()) return status;
    return completed;
  }
  /// Rank i of what the last shrink() with ANYCCL_SHRINK_ABORT made is rank survivors()[i] here.
  /// See anycclCommSurvivors.
  Result<std::vector<Rank>> survivors() const {
    int size = 0, count = 0;
    static_cast<void>(anycclCommCount(handle_, &size));
    std::vector<int> numbers(static_cast<std::size_t>(size));
    const Status status =
        detail::status_of(anycclCommSurvivors(handle_, numbers.data(), &count), handle_);
    if (!status.ok()) return status;
    std::vector<Rank> ranks;
    for (int i = 0; i < count; ++i) ranks.push_back(Rank{numbers[static_cast<std::size_t>(i)]});
    return ranks;
  }
  /// For one rank, which passes it to the new ranks and to its own grow().
  Result<UniqueId> grow_id() {
    anycclUniqueId id{};
    const Status status = detail::status_of(anycclCommGetUniqueId(handle_, &id), handle_);
    if (!status.ok()) return status;
    return UniqueId(id);
  }
  /// A communicator of these ranks and of new ones behind them, `size` in all. One rank has the
  /// `id`, the others null; a new rank calls it of a default communicator, with the id and its
  /// `rank`. See anycclCommGrow.
  Result<Communicator> grow(int size, const UniqueId* id, Rank rank = Rank{-1},
                            const CommunicatorConfig& config = {}) {
    return value_of("grow", "grow_into", config,
                    [&](Communicator& grown) { return grow_into(grown, size, id, rank, config); });
  }
  /// grow() into `grown`; see split_into().
  Status grow_into(Communicator& grown, int size, const UniqueId* id, Rank rank = Rank{-1},
                   const CommunicatorConfig& config = {}) {
    return grown.take("grow_into", handle_, [&](anycclComm_t* made) {
      anycclConfig_t c = config.c_config();
      return anycclCommGrow(handle_, size, id == nullptr ? nullptr : &id->value(), index(rank),
                            made, &c);
    });
  }
  /// Makes all ranks' operations fail, naming this rank, unless the communicator has failed before.
  /// Never waits for a peer; the handle stays.
  Status revoke() {
    return detail::status_of(anycclCommRevoke(handle_, ANYCCL_REVOKE_DEFAULT), handle_);
  }
  /// Bytes of host memory that this rank holds for it. See anycclCommMemStats.
  Result<std::uint64_t> memory_bytes() const {
    std::uint64_t bytes = 0;
    const Status status =
        detail::status_of(anycclCommMemStats(handle_, anycclStatGpuMemTotal, &bytes), handle_);
    if (!status.ok()) return status;
    return bytes;
  }

  /// How the last collective ran, for people; "" before the first. See anycclCommLastPlan.
  std::string last_plan() const {
    const char* text = "";
    static_cast<void>(anycclCommLastPlan(handle_, &text));
    return text;
  }
  /// What this rank has done in it so far, as JSON. Any thread. See anycclCommMetrics.
  Result<std::string> metrics() const {
    const char* text = "";
    const Status status = detail::status_of(anycclCommMetrics(handle_, &text), handle_);
    if (!status.ok()) return status;
    return std::string(text);
  }
  /// Writes what this rank remembers of its operations to a file. Any thread. See anycclCommDump.
  Status dump(const std::string& path) const {
    return detail::status_of(anycclCommDump(handle_, path.c_str()), handle_);
  }
  /// Ok, why it has failed, or in_progress as ready() has it. Any thread.
  Status failure() const {
    anycclResult_t error = anycclSuccess;
    static_cast<void>(anycclCommGetAsyncError(handle_, &error));
    return detail::status_of(error, handle_);
  }
  /// False while it is being created or finalized in the background, or another one made from it.
  Result<bool> ready() const {
    const Status now = failure();
    if (now.code() == Code::in_progress) return false;
    if (!now.ok()) return now;
    return true;
  }
  /// Completes what was issued and takes leave; then it can only be destroyed or aborted. One that
  /// was begun without waiting does not wait here either: ready() says when it is done. `most`:
  /// above 0, how long it may take; see anycclCommFinalizeFor.
  Status finalize(std::chrono::milliseconds most = {}) {
    const Status status = detail::status_of(
        anycclCommFinalizeFor(handle_, static_cast<unsigned int>(most.count())), handle_);
    return status.code() == Code::in_progress ? Status{} : status;
  }
  /// Completes what was issued, then frees the handle.
  Status destroy() {
    const anycclResult_t result = anycclCommDestroy(handle_);  // an abort() meanwhile has it, too
    static_cast<void>(handle_.take());
    return detail::status_of(result);
  }
  /// Makes all ranks' operations fail, then frees the handle. Never waits for a peer. Other threads
  /// may be in calls of this object: those that wait return aborted, but finalize() and destroy()
  /// return ok.
  Status abort() { return detail::status_of(anycclCommAbort(handle_.take())); }

 private:
  friend class Grid;
  explicit Communicator(anycclComm_t handle) : Operations(handle) {}
  /// Creates it by init(handle); what was begun without waiting is no error. Errors are in
  /// `parent`.
  template <typename Init>
  Status take(const char* what, anycclComm_t parent, const Init& init) {
    if (handle_ != nullptr) {
      std::string text(what);
      text += ": the object is a communicator already";
      return detail::refused(Code::invalid_usage, text);
    }
    const anycclResult_t result = init(handle_.place());
    return result == anycclInProgress ? Status{} : detail::status_of(result, parent);
  }
  /// What make(communicator) puts there.
  template <typename Make>
  static Result<Communicator> value_of(const char* what, const char* instead,
                                       const CommunicatorConfig& config, const Make& make) {
    if (config.blocking)
      if (const Status free = check_no_group(what, instead); !free.ok()) return free;
    Communicator comm;
    const Status status = make(comm);
    if (!status.ok()) return status;
    return comm;
  }
};

/// inout[i] = in[i] op inout[i], in this process alone, with the bits that two ranks would get. Not
/// avg, nor operators of a communicator, which has a reduce_local() of its own.
///
/// Shapes: in.count == inout.count, of one dtype. The two do not overlap.
inline Status reduce_local(View in, View inout, ReduceOp op) {
  return Communicator().reduce_local(in, inout, op);
}

/// What all communicators of this process have done so far, as Prometheus reads it. See
/// anycclMetrics.
inline Result<std::string> metrics_text() {
  const char* text = "";
  const Status status = detail::status_of(anycclMetrics(&text), nullptr);
  if (!status.ok()) return status;
  return std::string(text);
}

/// Adds algorithms that files describe: "mine.json:/opt/algorithms". See anycclLoadAlgorithms.
inline Status load_algorithms(const std::string& paths) {
  return detail::status_of(anycclLoadAlgorithms(paths.c_str()), nullptr);
}

}  // namespace anyccl
