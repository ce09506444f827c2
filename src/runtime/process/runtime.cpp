#include "runtime/process/runtime.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/side_by_side.hpp"
#include "platform/bootstrap/group/hosts.hpp"
#include "platform/bootstrap/group/placement.hpp"
#include "platform/bootstrap/mesh/connect.hpp"
#include "platform/bootstrap/rendezvous/environment.hpp"
#include "runtime/links/known_links.hpp"
#include "runtime/links/on_demand.hpp"
#include "runtime/links/transports.hpp"
#include "runtime/process/create.hpp"
#include "runtime/process/duplicate_library.hpp"
#include "runtime/process/init_report.hpp"
#include "runtime/process/joined_comm.hpp"
#include "runtime/process/process.hpp"

namespace anyccl {
namespace {

/// Returns how many bytes of a message lie in its slot at most: 0 for the simple protocol, `usual`
/// if none is named. Messages have no rules by size: what is said for everything is said for them.
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
               links_on_demand(std::move(init.listeners), {group, &group->members}, group->secret,
                               me, later, network, init.config));
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
  m.verify.each = static_cast<std::uint64_t>(init.settings.verify >= 0 ? init.settings.verify
                                                                       : init.config.verify.each);
  m.verify.later =
      init.settings.verify_later >= 0 ? init.settings.verify_later == 1 : init.config.verify.later;
  m.device_queues = init.settings.device_queues >= 0 ? init.settings.device_queues == 1
                                                     : init.config.device_queues;
  m.fuses = init.config.fuses && m.verify.each == 0;  // each call has a verification of its own
  ANYCCL_TRY(m.verify.secret, context_key_of(group->secret, "verification"));
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
  m.dump_folder = init.config.dump.folder;
  m.trace_folder = init.config.trace_folder;
  m.around = std::make_shared<JoinedComm>(group, me, links, init.config.transport, m.id);
  m.background = &background_progress();
  ANYCCL_CHECK(add_transports(m, key, links, init.config, init.deadline));
  report_init(init, placement, m);
  const auto comm = std::make_shared<Comm>(std::move(m));
  Process::get().add(comm);
  if (!init.config.metrics_folder.empty()) Process::get().report_in(init.config.metrics_folder);
  if (init.config.dump.signal != 0) Process::get().dump_at(init.config.dump.signal);
  return comm;
}

BackgroundProgress& background_progress() {
  return Process::get().progress();
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
      bootstrap::join(id, init.hello, init.deadline, &init.listeners, ids.was_made_here(id));
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
