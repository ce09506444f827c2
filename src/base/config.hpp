#pragma once
// The environment is read here, and nowhere else. read_config() is called when a communicator is
// created, and passes its settings on as a Config. `anyccl info` and the docs show variables().

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "anyccl/status.hpp"
#include "base/chaos_plan.hpp"

namespace anyccl {

struct Config;

/// One environment variable that anyccl reads. Help texts, docs, the check for unknown names and
/// the comparison between ranks all come from this table.
struct Variable {
  std::string_view name, fallback, meaning;
  /// The value that ranks compare: those that differ in it fail when a communicator is created.
  /// Null: they may differ.
  std::string (*compared)(const Config&) = nullptr;
  bool same_everywhere() const { return compared != nullptr; }
};
std::span<const Variable> variables();
/// The value of the variable `name` in the environment now; absent: not set.
std::optional<std::string> value_now(std::string_view name);

/// ANYCCL_TUNER_TABLE, when not even the machine's table is to be used.
inline constexpr std::string_view kNoTable = "none";
/// A size in bytes that users may set.
struct SizeLimits {
  std::size_t least, most;
};
/// ANYCCL_CHUNK_SIZE and ANYCCL_BUFFSIZE. How small a buffer may be also depends on the ranks.
inline constexpr SizeLimits kChunkLimits{4096, std::size_t{1} << 30},
    kBufferLimits{65536, std::size_t{1} << 30};
/// ANYCCL_RECORD: 64 bytes each. Traced: with ANYCCL_TRACE, if nothing else is said.
inline constexpr std::size_t kRecordEntries = 1024, kTracedEntries = std::size_t{1} << 16,
                             kMostRecordEntries = std::size_t{1} << 20;
/// Errors: invalid_argument, naming the setting, its value and the limits.
Status check_size(std::string_view setting, std::size_t bytes, SizeLimits limits);

/// ANYCCL_SHM_COPY: where publications of shared memory are that do not fit their slot.
enum class ShmCopy : std::uint8_t {
  fastest,  ///< In memory of anycclMemAlloc, else wherever it is fastest.
  staged,   ///< In the staging ring: two copies.
  cma,      ///< In private memory, which readers read with process_vm_readv; else staged.
  window,   ///< In memory of anycclMemAlloc; else staged.
};
inline constexpr std::string_view kCopyNames[] = {"staged", "cma", "window"};
/// ANYCCL_WAIT: what threads do that wait for peers.
enum class WaitMode : std::uint8_t {
  balanced =
      1,    ///< They spin for a while, and sleep where the wait is long or others want the core.
  latency,  ///< They never sleep.
  thrift,   ///< They sleep after some microseconds.
};
inline constexpr std::string_view kWaitNames[] = {"balanced", "latency", "thrift"};

/// ANYCCL_PORT_RANGE: the ports at which this process may listen, both ends included.
struct PortRange {
  std::uint16_t low = 0, high = 0;  ///< 0: any free port.
  bool is_any() const { return low == 0; }
  bool operator==(const PortRange&) const = default;
};

/// The environment, read and checked once per communicator. Nothing else calls getenv.
struct Config {
  std::string algo;         ///< ANYCCL_ALGO as written; empty: the tuner chooses.
  std::string algo_path;    ///< ANYCCL_ALGO_PATH as written; empty: none.
  std::string proto;        ///< ANYCCL_PROTO as written; empty: by size.
  std::string tuner_table;  ///< File of measurements, or kNoTable; empty: that of this machine.
  std::string transport;    ///< Name of the only transport to use; empty: the best per peer.
  std::string host_id;      ///< Ranks with different ids are on different hosts; empty: found out.
  std::string interface;    ///< ANYCCL_SOCKET_IFNAME as written; empty: any.
  int ack_timeout_s = 30;   ///< ANYCCL_TCP_ACK_TIMEOUT.
  bool checksums = false;   ///< ANYCCL_CHECKSUM.
  ChaosPlan chaos;          ///< ANYCCL_CHAOS.
  bool tls = false;         ///< ANYCCL_TLS.
  double reconnect_s = 0;   ///< ANYCCL_RECONNECT; 0: a connection that is lost stays so.
  std::string secret;       ///< ANYCCL_SECRET as written; empty: none.
  ShmCopy shm_copy = ShmCopy::fastest;
  WaitMode waits = WaitMode::balanced;
  bool fuses = true;                            ///< ANYCCL_FUSION.
  bool device_queues = false;                   ///< ANYCCL_DEVICE_QUEUES.
  std::size_t chunk_bytes = 0;                  ///< ANYCCL_CHUNK_SIZE; 0: not set.
  std::size_t buffer_bytes = 0;                 ///< ANYCCL_BUFFSIZE; 0: not set.
  int port = 0;                                 ///< ANYCCL_PORT; 0: MASTER_PORT + 1.
  PortRange ports;                              ///< ANYCCL_PORT_RANGE.
  double timeout_s = 60;                        ///< For creating a communicator.
  double op_timeout_s = 1800;                   ///< ANYCCL_OP_TIMEOUT; 0: none.
  double warn_after_s = 10;                     ///< ANYCCL_WARN_AFTER; 0: never.
  std::size_t record_entries = kRecordEntries;  ///< ANYCCL_RECORD.
  struct Dump {
    std::string folder;  ///< ANYCCL_DUMP_DIR; empty: none.
    int signal = 0;      ///< ANYCCL_DUMP_SIGNAL; 0: none.
  } dump;
  std::string trace_folder;    ///< ANYCCL_TRACE; empty: none.
  std::string metrics_folder;  ///< ANYCCL_METRICS; empty: none.
  int connect_all = 32;        ///< ANYCCL_CONNECT_ALL.
  int reproducible = -1;       ///< ANYCCL_REPRODUCIBLE; -1: not set.
  struct Verify {
    int each = 0;        ///< Each N-th collective; 0: none.
    bool later = false;  ///< Calls do not wait for it.
  };
  Verify verify;  ///< ANYCCL_VERIFY.
  /// Where programs of this user keep what they can make again; empty: nowhere.
  std::string cache_folder;
  // The launcher's variables (torchrun's names); absent: not set, or no such number. Other software
  // has variables of these names, too, and most communicators need none of them.
  std::optional<int> rank, world_size, master_port;
  std::string master_addr;
  std::vector<std::pair<std::string, Status>> unreadable = {};  ///< Which are not, and why.
  /// The variables of other launchers that are set, see find_launch().
  std::vector<std::pair<std::string_view, std::string>> of_launchers = {};
};

/// Sets level, subsystems and file of the log, too, by ANYCCL_DEBUG and the like. Errors:
/// invalid_argument naming the variable, its value and what is allowed. Warns once per process
/// about each ANYCCL_* name it does not know.
Result<Config> read_config();

}  // namespace anyccl
