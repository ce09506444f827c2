#pragma once
// The runtime makes a communicator of a Membership, which has its ranks, settings and transports,
// and the process around it. The sizes that depend on the number of ranks are here, too.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "framework/collective/planning_facts.hpp"
#include "platform/probe/oversubscription.hpp"
#include "platform/transport/transport.hpp"

namespace anyccl {

/// What the configuration of a communicator says. Communicators that are split from it have the
/// same, unless theirs says something else.
struct CommSettings {
  std::string algo, proto;       ///< Rules as ANYCCL_ALGO and ANYCCL_PROTO have them.
  std::size_t chunk_bytes = 0;   ///< As ANYCCL_CHUNK_SIZE; 0: not set.
  std::size_t buffer_bytes = 0;  ///< As ANYCCL_BUFFSIZE; 0: not set.
  int level = -1;                ///< As ANYCCL_REPRODUCIBLE; -1: not set.
  int verify = -1;               ///< Each N-th collective, 0: none; -1: not set.
  int verify_later = -1;         ///< Whether calls do not wait for that; -1: not set.
  int device_queues = -1;        ///< As ANYCCL_DEVICE_QUEUES; -1: not set.
  /// Time limit of operations that have none of their own; 0: none. Absent: ANYCCL_OP_TIMEOUT's.
  std::optional<std::chrono::milliseconds> time_limit;
  /// Time limit of creating the communicator, its own alone. Absent: ANYCCL_TIMEOUT's.
  std::optional<std::chrono::milliseconds> creation_limit;
  Status problem;  ///< What is wrong with them; other ranks hear of it.
  /// The environment when the call was made, which other threads may change before it is used.
  /// Null: it is read when it is used.
  std::shared_ptr<const Result<Config>> environment;
};

/// Slots per bank of every communicator of `size` ranks.
std::uint32_t slots_for(int size);
/// Bytes that a slot holds itself: 2 KiB in small communicators, less in large ones.
std::size_t line_bytes_for(int size);
/// Bytes of each rank's staging ring: on one host less with more ranks, because all rings together
/// take room from the last-level cache.
std::size_t ring_bytes_for(int size, bool network);
/// The smallest ring with which every algorithm can go on.
std::size_t least_ring_bytes(int size);

/// "rank 2 (host n7, pid 4711)", for messages; made when one is asked for.
class RankNames {
 public:
  RankNames() = default;
  explicit RankNames(std::function<std::string(std::size_t)> make) : make_(std::move(make)) {}
  std::string operator[](std::size_t rank) const {
    return make_ ? make_(rank) : "rank " + std::to_string(rank);
  }

 private:
  std::function<std::string(std::size_t)> make_;
};

/// How long a wait for peers may take. See ANYCCL_WARN_AFTER, ANYCCL_OP_TIMEOUT and
/// ANYCCL_TCP_ACK_TIMEOUT.
struct WaitLimits {
  std::chrono::milliseconds warn_after{0};  ///< 0: never.
  /// From the turn of an operation that has no time limit of its own; 0: for ever.
  std::chrono::milliseconds most{0};
  std::chrono::milliseconds most_of(std::chrono::milliseconds own) const {
    return own.count() > 0 ? own : most;
  }
  /// A peer's host that has not answered for so long is silent. Transports look; here it is only
  /// for messages.
  std::chrono::seconds silence{0};
};

class BackgroundProgress;
class SpentCalls;
struct Membership;

/// The process around one communicator, of which the framework knows nothing else: no other
/// communicators, processes or metrics. Reports of waits and dumps ask who a peer is and what else
/// it does, and the end of the communicator says what it has done. The runtime implements it.
/// Functions may be called with the progress lock: they do not wait.
///
/// Threads: any.
class CommHost {
 public:
  virtual ~CommHost() = default;
  /// The process number of a rank of this host, also of this process; 0 of any other rank.
  virtual int process_of(Rank rank) const = 0;
  /// ", and has called operation 3, barrier, of communicator tp, which this rank has not": of
  /// another communicator of both; empty if nothing is known.
  virtual std::string call_elsewhere(Rank rank) const = 0;
  /// The communicator is being destroyed after `calls`.
  virtual void note_ended(const Membership& me, const SpentCalls& calls) const = 0;
};

/// The reason of the failure of a communicator that the program has ended by an abort on this rank.
Status aborted_by(const Membership& me);

/// Everything a communicator is made of.
struct Membership : PlanningFacts {
  RankNames names;
  std::string label;  ///< "communicator train of 8 ranks", for messages.
  /// Equal on all its ranks, and another one for each communicator of a job.
  std::string id;
  std::string name;                             ///< As the program calls it; may be empty.
  std::string host;                             ///< This rank's.
  std::size_t record_entries = kRecordEntries;  ///< Its Recorder's; 0: none.
  std::string dump_folder;                      ///< ANYCCL_DUMP_DIR; empty: no dumps by themselves.
  std::string trace_folder;                     ///< ANYCCL_TRACE; empty: no traces.
  std::shared_ptr<const CommHost> around;       ///< The process; null: nothing is known of it.
  /// Goes on with what no caller waits for, and gives memory back. Null: nothing does.
  BackgroundProgress* background = nullptr;
  std::vector<std::unique_ptr<Transport>> transports;
  struct Verify {
    std::uint64_t each = 0;    ///< Each N-th collective is verified; 0: none.
    bool later = false;        ///< Callers do not wait for it.
    std::uint64_t secret = 0;  ///< Equal on all its ranks: results must not depend on it.
  } verify;
  bool device_queues = false;                   ///< It is to have queues of devices.
  int cores_each = 1;                           ///< This rank's, as Placement has it.
  std::size_t message_line_bytes = kLineBytes;  ///< As TransportSetup has it.
  CommSettings settings;                        ///< What its configuration says.
  WaitMode waits = WaitMode::balanced;
  WaitLimits wait_limits;
  probe::OversubscriptionMonitor::Registration registration;  ///< Among the ranks of this host.
};

}  // namespace anyccl
