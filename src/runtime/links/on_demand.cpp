#include "runtime/links/on_demand.hpp"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/per_process.hpp"
#include "base/signals.hpp"
#include "platform/bootstrap/mesh/on_demand.hpp"
#include "platform/bootstrap/socket/interfaces.hpp"
#include "platform/link/connector.hpp"
#include "platform/link/doorbell.hpp"
#include "runtime/links/known_links.hpp"

namespace anyccl {
namespace {

using Members = std::shared_ptr<const std::vector<bootstrap::Hello>>;

class GroupConnector;

/// A rank's group, as the thread has it.
struct ConnectedGroup {
  bootstrap::OnDemand machine;  // the thread's
  Members members;
  std::vector<std::weak_ptr<link::Link>> links;  // by rank
  std::weak_ptr<GroupConnector> connector;
  std::chrono::milliseconds reconnect_limit;
  Status without_memory;  // why links are given up then: made while there is memory
  struct Wanted {
    Rank peer;
    bool again;  // its connection was lost
  };
  std::mutex mutex;
  std::vector<Wanted> wanted;                       // since the thread last looked
  std::vector<std::weak_ptr<link::Link>> resuming;  // the thread's
};

/// Calls and is called for all groups of the process.
class ConnectingThread {
 public:
  Status add(std::shared_ptr<ConnectedGroup> group) {
    const std::lock_guard lock(mutex_);
    groups_.push_back(std::move(group));
    bell_.ring();
    if (thread_.joinable()) return {};
    const SignalsBlocked blocked;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& e) {
      groups_.pop_back();
      return error(Code::system_error, "cannot start the thread that connects ranks: {}", e.what());
    }
    ::pthread_setname_np(thread_.native_handle(), "anyccl-connect");
    return {};
  }
  void remove(const std::shared_ptr<ConnectedGroup>& group) {
    const std::lock_guard lock(mutex_);
    std::erase(groups_, group);
    bell_.ring();
  }
  void look() { bell_.ring(); }
  void stop() {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    bell_.ring();
    std::thread thread = std::move(thread_);
    lock.unlock();
    if (thread.joinable()) thread.join();
  }

 private:
  using Groups = std::vector<std::shared_ptr<ConnectedGroup>>;
  static constexpr int kLongest = 60000, kWithoutBell = 10;       // ms
  static constexpr std::chrono::milliseconds kWithoutMemory{10};  // there may be some again

  void run() {
    while (!is_stopping()) {
      try {
        poll_once();
      } catch (const std::bad_alloc&) {
        bell_.answer();
        give_up();
        std::this_thread::sleep_for(kWithoutMemory);
      }
    }
  }
  void poll_once() {
    const std::optional<int> bell = bell_.listen();  // what rings from now on ends the poll
    const Groups groups = groups_now();
    if (is_stopping()) return bell_.answer();
    ends_.clear();
    machine_ends_.clear();
    entries_.assign(1, {bell.value_or(-1), POLLIN, 0});
    int wait = !bell ? 0 : *bell < 0 ? kWithoutBell : kLongest;
    for (const auto& group : groups) prepare(*group, wait);
    ::poll(entries_.data(), entries_.size(), wait);
    bell_.answer();
    std::size_t begin = 1;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      progress(*groups[i], std::span(entries_).subspan(begin, machine_ends_[i] - begin));
      begin = ends_[i];
    }
  }
  Groups groups_now() {
    const std::lock_guard lock(mutex_);
    return groups_;
  }
  /// A turn that ended half-way may have lost any connection that was being made. Needs no memory.
  void give_up() {
    for (std::size_t i = 0; const auto group = group_at(i); ++i) give_up(*group);
  }
  std::shared_ptr<ConnectedGroup> group_at(std::size_t i) {
    const std::lock_guard lock(mutex_);
    return i < groups_.size() ? groups_[i] : nullptr;
  }
  bool is_stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }
  /// Begins the connections that are wanted, and appends the entries of the group; lowers `wait` to
  /// its next timeout.
  void prepare(ConnectedGroup& group, int& wait) {
    {
      const std::lock_guard lock(group.mutex);
      for (const auto& [peer, again] : group.wanted)
        again ? group.machine.want_again(peer, group.reconnect_limit) : group.machine.want(peer);
      group.wanted.clear();
    }
    group.machine.append_wanted(entries_);
    machine_ends_.push_back(entries_.size());
    std::erase_if(group.resuming, [&](const auto& weak) {
      pollfd entry{};
      const auto link = weak.lock();
      if (link == nullptr || !link->is_resuming(entry)) return true;
      entries_.push_back(entry);
      return false;
    });
    ends_.push_back(entries_.size());
    wait = group.machine.poll_ms(wait);
  }
  /// Attaches new connections to their links; a link that could not be connected is given up.
  static void progress(ConnectedGroup& group, std::span<const pollfd> entries);
  /// Gives up the links of the group that are not connected, for want of memory; the group stays.
  static void give_up(ConnectedGroup& group);

  std::mutex mutex_;
  Groups groups_;
  bool stopping_ = false;
  std::thread thread_;
  link::Doorbell bell_;
  // The thread's:
  std::vector<pollfd> entries_;
  std::vector<std::size_t> ends_;          // of each group's entries
  std::vector<std::size_t> machine_ends_;  // of those of its machine
};

class GroupConnector final : public link::Connector {
 public:
  explicit GroupConnector(std::shared_ptr<ConnectedGroup> group) : group_(std::move(group)) {}
  ~GroupConnector() override { per_process<ConnectingThread>().remove(group_); }
  GroupConnector(const GroupConnector&) = delete;
  GroupConnector& operator=(const GroupConnector&) = delete;

  void connect(Rank member) override { want({member, false}); }
  void reconnect(Rank member, int problem) override {
    log(LogSubsystem::net, "the connection to {} was lost: {}",
        describe((*group_->members)[uindex(member)]),
        problem == 0 ? "ended at the other end" : std::strerror(problem));
    want({member, true});
  }
  using Connector::note_attached;

 private:
  /// Asks the thread for a connection; does nothing in a forked child, which has no such thread.
  void want(ConnectedGroup::Wanted wanted) {
    if (generation_ != fork_generation()) return;  // the thread is the parent's
    {
      const std::lock_guard lock(group_->mutex);
      group_->wanted.push_back(wanted);
    }
    per_process<ConnectingThread>().look();
  }

  const std::shared_ptr<ConnectedGroup> group_;
  const std::uint64_t generation_ = fork_generation();
};

void ConnectingThread::give_up(ConnectedGroup& group) {
  group.machine.give_up();
  for (const auto& weak : group.links)
    if (const auto link = weak.lock()) link->give_up(group.without_memory);  // those attached stay
  if (const auto connector = group.connector.lock()) connector->note_attached();
}

void ConnectingThread::progress(ConnectedGroup& group, std::span<const pollfd> entries) {
  group.machine.progress(entries);
  for (const auto& weak : group.resuming)
    if (const auto link = weak.lock()) link->take_in();
  for (bootstrap::OnDemand::Outcome& outcome : group.machine.take_outcomes()) {
    const auto link = group.links[uindex(outcome.peer)].lock();
    if (link == nullptr) continue;  // nobody uses it any more
    const PeerLink made{outcome.peer, link, outcome.socket.local, outcome.socket.same_process};
    const bool is_first = !link->was_attached();
    Status problem = std::move(outcome.problem);
    if (problem.ok())
      problem = link->attach(std::move(outcome.socket.fd), std::move(outcome.socket.secure));
    if (!problem.ok())
      link->give_up(problem);
    else if (is_first)
      remember_links(*group.members, {made}, {{outcome.peer, outcome.socket.session}});
    else
      group.resuming.push_back(link);
    log(LogSubsystem::net, "{}: {}", describe((*group.members)[uindex(outcome.peer)]),
        !problem.ok() ? problem.message()
        : is_first    ? "connected"
                      : "connected again");
    if (const auto connector = group.connector.lock()) connector->note_attached();
  }
}

}  // namespace

std::vector<bool> connected_on_demand(const Config& config,
                                      const std::vector<bootstrap::Hello>& members, Rank me,
                                      bool force_network) {
  std::vector<bool> peers(members.size());
  // A connection that may be lost needs who listens and calls later, too.
  if (members.size() <= static_cast<std::size_t>(config.connect_all) && config.reconnect_s == 0)
    return peers;
  for (std::size_t r = 0; r < peers.size(); ++r)
    peers[r] = r != uindex(me) && (force_network || !same_host(members[uindex(me)], members[r]));
  return peers;
}

Result<std::vector<PeerLink>> links_on_demand(bootstrap::Listeners listeners, Members members,
                                              const bootstrap::Secret& secret, Rank me,
                                              const std::vector<bool>& peers, bool force_network,
                                              const Config& config) {
  const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(config.timeout_s * 1000));
  ANYCCL_TRY(bootstrap::OwnNetwork own, bootstrap::OwnNetwork::find());
  const auto group = std::shared_ptr<ConnectedGroup>(new ConnectedGroup{
      {std::move(listeners), members, me, secret, force_network, std::move(own), limit, config.tls,
       config.reconnect_s > 0},
      members,
      {},
      {},
      std::chrono::milliseconds(static_cast<std::int64_t>(config.reconnect_s * 1000)),
      error(Code::system_error, "{} has no memory to connect with other ranks",
            describe((*members)[uindex(me)])),
      {},
      {},
      {}});
  const auto connector = std::make_shared<GroupConnector>(group);
  group->connector = connector;
  group->links.resize(peers.size());
  const std::shared_ptr<const link::SocketKind> kind = network_socket(config);
  std::vector<PeerLink> links;
  for (std::size_t r = 0; r < peers.size(); ++r) {
    if (!peers[r]) continue;
    const Rank peer{static_cast<std::int32_t>(r)};
    // Not in one piece with the count, as in Link::make().
    links.push_back({peer,
                     std::shared_ptr<link::Link>(
                         new link::Link(kind, connector, peer, link_settings(config, me, peer))),
                     false, false});
    group->links[r] = links.back().link;
  }
  ANYCCL_CHECK(per_process<ConnectingThread>().add(group));
  return links;
}

void stop_connecting() {
  per_process<ConnectingThread>().stop();
}

}  // namespace anyccl
