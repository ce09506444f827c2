#include "runtime/process/runtime.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/per_process.hpp"
#include "base/side_by_side.hpp"
#include "platform/bootstrap/group/hosts.hpp"
#include "platform/bootstrap/group/placement.hpp"
#include "platform/bootstrap/mesh/connect.hpp"
#include "platform/bootstrap/rendezvous/environment.hpp"
#include "runtime/links/known_links.hpp"
#include "runtime/links/on_demand.hpp"
#include "runtime/links/transports.hpp"
#include "runtime/process/create.hpp"
#include "runtime/process/dump_signal.hpp"
#include "runtime/process/duplicate_library.hpp"
#include "runtime/process/init_report.hpp"
#include "runtime/process/metrics.hpp"

namespace anyccl {
namespace {

/// How long exit() waits at most for what the threads of streams are doing.
constexpr auto kExitTime = std::chrono::seconds(1);
/// See ANYCCL_METRICS.
constexpr std::chrono::seconds kReportEvery{5};

/// The rank of its process, if that has one alone.
std::optional<Rank> only_rank_of(const bootstrap::Hello& process,
                                 const std::vector<bootstrap::Hello>& members) {
  std::optional<Rank> rank;
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (!same_process(process, members[r])) continue;
    if (rank) return std::nullopt;
    rank = Rank{static_cast<std::int32_t>(r)};
  }
  return rank;
}

/// The state that belongs to the process and to no communicator. A forked child has one of its own.
class Process {
 public:
  static Process& get() { return per_process<Process>(); }

  void add(const CommPtr& comm, const Inheritance& inheritance) {
    const std::lock_guard lock(mutex_);
    leave_at_exit();
    if (comms_.size() >= most_comms_) {
      std::erase_if(comms_, [](const auto& other) { return other.second.comm.expired(); });
      most_comms_ = std::max<std::size_t>(16, 2 * comms_.size());
    }
    Joined joined{comm, inheritance.secret, inheritance.members, inheritance.transport, {}};
    for (const PeerLink& peer : inheritance.links)
      joined.links.push_back({peer.rank, peer.link, peer.local, peer.same_process});
    comms_.insert_or_assign(comm.get(), std::move(joined));
  }
  Inheritance inheritance_of(const Comm& comm) {
    const std::lock_guard lock(mutex_);
    const Joined& joined = comms_.at(&comm);
    Inheritance inheritance{joined.secret, joined.members, {}, joined.transport};
    for (const Joined::Link& peer : joined.links)  // the communicator keeps its links
      inheritance.links.push_back({peer.rank, peer.link.lock(), peer.local, peer.same_process});
    return inheritance;
  }
  std::shared_ptr<HostStream> make_stream() {
    const std::lock_guard lock(mutex_);
    leave_at_exit();
    auto stream = std::make_shared<HostStream>(++streams_made_);
    std::erase_if(streams_, [](const auto& other) { return other.expired(); });
    streams_.push_back(stream);
    return stream;
  }
  BackgroundProgress& progress() {
    const std::lock_guard lock(mutex_);
    if (progress_ == nullptr)
      progress_ = new BackgroundProgress;  // never destroyed: its thread may outlive main()
    return *progress_;
  }
  ProcessMetrics& metrics() { return metrics_; }
  /// From now on the metrics are written into this folder, again and again, and at exit.
  void report_in(const std::string& folder) {
    prepare_exit();
    if (metrics_.report_in(folder) && !reports_.exchange(true, std::memory_order_relaxed))
      progress().repeat(kReportEvery, [this] { metrics_.write(); });
  }
  /// What a rank of this process does in other communicators than `id`; see Membership::elsewhere.
  std::string call_elsewhere(const bootstrap::Hello& rank, std::string_view id) {
    std::vector<std::pair<CommPtr, Rank>> others;
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);  // its holder may wait for the caller
      if (!lock) return "";
      for (const auto& [key, one] : comms_) {
        CommPtr comm = one.comm.lock();
        const std::optional<Rank> peer = only_rank_of(rank, *one.members);
        if (comm != nullptr && peer && comm->membership().id != id)
          others.emplace_back(std::move(comm), *peer);
      }
    }
    for (const auto& [comm, peer] : others)
      if (const std::string call = comm->call_without_me(peer); !call.empty())
        return fmt::format(", and has called {}, which this rank has not", call);
    return "";
  }
  /// From now on the signal asks for dumps of all communicators.
  void dump_at(int signal) {
    constexpr std::chrono::milliseconds kLook{200}, kPatience{500};
    if (dumps_.exchange(true, std::memory_order_relaxed) || !take_dump_signal(signal)) return;
    progress().repeat(kLook, [this, kPatience] {
      if (!dumps_were_asked_for()) return;
      for (const CommPtr& comm : now().comms) comm->dump_on_signal(Deadline::in(kPatience));
    });
  }
  void prepare_exit() {
    const std::lock_guard lock(mutex_);
    leave_at_exit();
  }
  bootstrap::UniqueIds& unique_ids() { return unique_ids_; }

 private:
  struct Joined {
    struct Link {
      Rank rank;
      std::weak_ptr<link::Link> link;
      bool local, same_process;
    };
    std::weak_ptr<Comm> comm;
    bootstrap::Secret secret;
    std::shared_ptr<const std::vector<bootstrap::Hello>> members;
    std::string transport;
    std::vector<Link> links;
  };
  /// With the lock.
  void leave_at_exit() {
    // Also of the parent: children inherit what it registered.
    static std::atomic<bool> at_exit{false};
    if (!at_exit.load(std::memory_order_relaxed))
      at_exit.store(std::atexit([] {
                      get().metrics_.write();  // before communicators are kept from answering
                      get().leave_all();
                    }) == 0,
                    std::memory_order_relaxed);
  }
  ProcessMetrics::Now now() {
    ProcessMetrics::Now now;
    std::set<std::shared_ptr<link::Link>> links;
    const std::lock_guard lock(mutex_);
    for (const auto& [key, one] : comms_) {
      CommPtr comm = one.comm.lock();
      if (comm == nullptr) continue;
      now.comms.push_back(std::move(comm));
      for (const Joined::Link& peer : one.links)
        if (auto link = peer.link.lock()) links.insert(std::move(link));
    }
    now.links = links.size();
    return now;
  }
  /// So that peers know that we left and did not die, and get what is still on its way to them.
  /// Work that streams have not done by then stays undone.
  void leave_all() {
    const std::lock_guard lock(mutex_);
    const Deadline deadline = Deadline::in(kExitTime);
    if (progress_ != nullptr) progress_->stop(deadline);
    for (const std::weak_ptr<HostStream>& weak : streams_)
      if (const auto stream = weak.lock(); stream && stream->check().ok()) stream->stop(deadline);
    for (const auto& [key, one] : comms_)
      if (const CommPtr comm = one.comm.lock()) comm->leave_for_exit(deadline);
    stop_connecting();
  }

  std::mutex mutex_;
  std::unordered_map<const Comm*, Joined> comms_;
  std::size_t most_comms_ = 16;  // With so many, those that have ended are forgotten.
  std::vector<std::weak_ptr<HostStream>> streams_;
  std::uint64_t streams_made_ = 0;
  bootstrap::UniqueIds unique_ids_;
  BackgroundProgress* progress_ = nullptr;
  std::atomic<bool> reports_{false}, dumps_{false};  // see report_in() and dump_at()
  ProcessMetrics metrics_{[this] { return now(); }};
};

/// Messages have no rules by size: what is said for everything is said for them.
std::size_t message_line_bytes(const TunerPolicy& policy, std::size_t usual) {
  std::optional<Protocol> said = policy.environment.protocols.of_messages();
  if (!said) said = policy.communicator.protocols.of_messages();
  if (!said || *said == Protocol::ll128) return usual;
  return *said == Protocol::ll ? kLineBytes : 0;
}

Status check_rank(int size, int rank) {
  if (size < 1 || size > kLargestGroup)
    return error(Code::invalid_argument, "nranks {} is not in 1..{}", size, kLargestGroup);
  if (rank < 0 || rank >= size)
    return error(Code::invalid_argument, "rank {} is not in 0..{}", rank, size - 1);
  return {};
}

/// Whether ANYCCL_TRANSPORT says that ranks of one host use the network.
bool forces_network(const Config& config) {
  const TransportEntry* const named = find_transport(config.transport);
  return named != nullptr && named->medium == Medium::network;
}

/// See Membership. A process of another container may have the same number.
int process_here(const bootstrap::Hello& me, const bootstrap::Hello& other) {
  if (!same_host(me, other) || (other.pid == me.pid && !same_process(me, other))) return 0;
  return static_cast<int>(other.pid);
}

/// A time above 0 becomes at least a millisecond.
std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1e3)));
}

/// The configuration of the communicator comes first: the variable is for all others.
WaitLimits wait_limits_of(const InitContext& init) {
  return {.warn_after = milliseconds_of(init.config.warn_after_s),
          .most = init.settings.time_limit.value_or(milliseconds_of(init.config.op_timeout_s)),
          .silence = std::chrono::seconds(init.config.ack_timeout_s)};
}

std::shared_ptr<const std::vector<bootstrap::Hello>> members_of(const GroupPtr& group) {
  return {group, &group->members};
}

}  // namespace

Result<link::ContextKey> context_key_of(const bootstrap::Secret& secret, std::string_view use) {
  ANYCCL_TRY(const bootstrap::Secret derived, secret.derive(use));
  link::ContextKey key = 0;
  std::memcpy(&key, derived.bytes().data(), sizeof key);
  return key;
}

Result<CommPtr> create(InitContext& init, const GroupPtr& group, Rank me) {
  if (group->members.size() == 1) return create_over(init, group, me, {});
  const bool network = forces_network(init.config);
  const std::vector<bool> later = connected_on_demand(init.config, group->members, me, network);
  ANYCCL_TRY(const auto known, LinksOfGroup::find(*group, me, network, later, init.config.tls));
  ANYCCL_TRY(std::vector<PeerSocket> sockets,
             bootstrap::connect_all(init.listeners, group->members, me, group->secret, network,
                                    init.deadline, known.get(), later, init.config.tls));
  std::vector<PeerLink> links = known->found();
  std::vector<LinkIdentity> identities;
  for (const PeerSocket& socket : sockets) identities.push_back({socket.rank, socket.session});
  ANYCCL_TRY(std::vector<PeerLink> fresh, make_links(std::move(sockets), me, init.config));
  const auto claims = remember_links(group->members, fresh, identities);
  std::move(fresh.begin(), fresh.end(), std::back_inserter(links));
  if (std::find(later.begin(), later.end(), true) != later.end()) {
    Process::get().prepare_exit();
    ANYCCL_TRY(std::vector<PeerLink> others,
               links_on_demand(std::move(init.listeners), members_of(group), group->secret, me,
                               later, network, init.config));
    std::move(others.begin(), others.end(), std::back_inserter(links));
  }
  std::sort(links.begin(), links.end(),
            [](const PeerLink& a, const PeerLink& b) { return a.rank < b.rank; });
  return create_over(init, group, me, links);
}

Result<CommPtr> create_over(InitContext& init, const GroupPtr& group, Rank me,
                            const std::vector<PeerLink>& links, std::size_t most_ring_bytes) {
  Membership m;
  m.rank = me;
  m.size = static_cast<int>(group->members.size());
  const bootstrap::Placement placement = bootstrap::placement_of(group->members);
  m.names = RankNames([group](std::size_t rank) { return describe(group->members[rank]); });
  m.policy = policy_of(init, group->members);
  m.settings = init.settings;
  m.line_bytes = line_bytes_for(m.size);
  m.message_line_bytes = message_line_bytes(m.policy, m.line_bytes);
  const TransportEntry* const named = find_transport(init.config.transport);
  m.network = placement.several_hosts() || (named != nullptr && named->medium != Medium::memory);
  m.near_of = m.network ? placement.host_of : placement.near_of;
  m.ranks_per_core = placement.ranks_per_core;
  m.cores_each = placement.cores_each[uindex(me)];
  m.waits = init.config.waits;
  m.wait_limits = wait_limits_of(init);
  m.verify = static_cast<std::uint64_t>(init.settings.verify >= 0 ? init.settings.verify
                                                                  : init.config.verify.each);
  m.verify_later =
      init.settings.verify_later >= 0 ? init.settings.verify_later == 1 : init.config.verify.later;
  m.fuses = init.config.fuses && m.verify == 0;  // each call has a verification of its own
  ANYCCL_TRY(m.verify_secret, context_key_of(group->secret, "verification"));
  ANYCCL_TRY(const std::size_t ring_bytes, ring_bytes_of(init, m.size, m.network));
  m.ring_bytes = std::min(most_ring_bytes, ring_bytes);
  const bootstrap::Hello& mine = group->members[uindex(me)];
  const bootstrap::RanksNear near = bootstrap::ranks_near(mine, group->members);
  m.registration = probe::OversubscriptionMonitor::of_process().add(near.in_process, near.on_host,
                                                                    near.in_containers_beside);
  ANYCCL_TRY(const link::ContextKey key, context_key_of(group->secret, "context"));
  m.id = fmt::format("{:08x}", key >> 32);
  m.name = init.name;
  m.host = mine.host_name.data();
  m.label = fmt::format("communicator {} of {} ranks", m.name.empty() ? m.id : m.name, m.size);
  m.record_entries = init.config.record_entries;
  m.dump_folder = init.config.dump_folder;
  m.trace_folder = init.config.trace_folder;
  m.when_ended = [](const Membership& who, const SpentCalls& calls) {
    Process::get().metrics().add(who, calls);
  };
  m.elsewhere = [group, id = m.id](Rank rank) {
    const bootstrap::Hello& other = group->members[uindex(rank)];
    return only_rank_of(other, group->members) ? Process::get().call_elsewhere(other, id) : "";
  };
  m.process_of = [group, &mine](Rank r) { return process_here(mine, group->members[uindex(r)]); };
  ANYCCL_CHECK(add_transports(m, key, links, init.config, init.deadline));
  report_init(init, placement, m);
  const auto comm = std::make_shared<Comm>(std::move(m));
  comm->when_grown([weak = std::weak_ptr(comm), &background = background_progress()] {
    background.give_back_later(weak);
  });
  if (comm->membership().verify_later)
    comm->when_left_alone([weak = std::weak_ptr(comm), &background = background_progress()] {
      // Without a thread it goes on with the next call.
      if (const CommPtr alive = weak.lock()) static_cast<void>(background.add(alive));
    });
  Process::get().add(comm, {group->secret, members_of(group), links, init.config.transport});
  if (!init.config.metrics_folder.empty()) Process::get().report_in(init.config.metrics_folder);
  if (init.config.dump_signal != 0) Process::get().dump_at(init.config.dump_signal);
  return comm;
}

Inheritance inheritance_of(const Comm& comm) {
  return Process::get().inheritance_of(comm);
}

BackgroundProgress& background_progress() {
  return Process::get().progress();
}

std::optional<std::string> metrics_text(Deadline deadline) {
  return Process::get().metrics().text(deadline);
}

std::shared_ptr<HostStream> make_stream() {
  return Process::get().make_stream();
}

Result<anycclUniqueId> make_unique_id() {
  ANYCCL_CHECK(refuse_duplicate_library());
  ANYCCL_TRY(const Config config, read_config());
  ANYCCL_TRY(const bootstrap::UniqueId made,
             Process::get().unique_ids().make(config.interface, config.ports));
  anycclUniqueId id{};
  made.to_bytes(id.internal);
  return id;
}

void drop_unique_id(const anycclUniqueId& bytes) {
  const auto id = bootstrap::UniqueId::from_bytes(bytes.internal);
  if (id.ok()) Process::get().unique_ids().drop(*id, false);
}

Result<CommPtr> join_by_id(const anycclUniqueId& bytes, int size, int rank, const std::string& name,
                           const CommSettings& settings) {
  ANYCCL_CHECK(check_rank(size, rank));
  ANYCCL_TRY(const bootstrap::UniqueId id, bootstrap::UniqueId::from_bytes(bytes.internal));
  ANYCCL_TRY(InitContext init, prepare_init(rank, size, settings));
  init.name = name;
  bootstrap::UniqueIds& ids = Process::get().unique_ids();
  Result<bootstrap::Group> group =
      bootstrap::join(id, init.hello, init.deadline, &init.listeners, ids.made(id));
  ids.drop(id, !group.ok() && group.status().code() != Code::timeout);
  if (!group.ok()) return group.status();
  return create(init, std::make_shared<const bootstrap::Group>(*std::move(group)), Rank{rank});
}

Result<CommPtr> join_by_environment(const std::string& name, const CommSettings& settings) {
  ANYCCL_TRY(Config config, environment_of(settings));
  ANYCCL_TRY(const bootstrap::LaunchInfo info, bootstrap::read_launch_info(config));
  ANYCCL_TRY(InitContext init,
             prepare_init(index(info.rank), info.size, std::move(config), settings));
  init.name = name;
  ANYCCL_TRY(bootstrap::Group group,
             bootstrap::join_environment(init.config, init.hello, init.deadline, info.launch,
                                         &init.listeners));
  return create(init, std::make_shared<const bootstrap::Group>(std::move(group)), info.rank);
}

Result<std::vector<CommPtr>> join_all_here(int size) {
  ANYCCL_CHECK(check_rank(size, 0));
  std::vector<InitContext> inits;
  bootstrap::Group group;
  ANYCCL_TRY(group.secret, bootstrap::Secret::random());
  for (int r = 0; r < size; ++r) {
    ANYCCL_TRY(InitContext init, prepare_init(r, size));
    group.members.push_back(init.hello);
    inits.push_back(std::move(init));
  }
  const auto shared = std::make_shared<const bootstrap::Group>(std::move(group));
  std::vector<CommPtr> comms(static_cast<std::size_t>(size));
  std::vector<std::function<Status()>> jobs;
  for (std::size_t r = 0; r < comms.size(); ++r)
    jobs.emplace_back([&, r]() -> Status {
      ANYCCL_TRY(comms[r], create(inits[r], shared, Rank{static_cast<std::int32_t>(r)}));
      return {};
    });
  ANYCCL_CHECK(run_side_by_side(jobs));
  return comms;
}

}  // namespace anyccl
