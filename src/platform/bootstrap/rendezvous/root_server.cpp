#include "platform/bootstrap/rendezvous/root_server.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <new>
#include <system_error>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"

namespace anyccl::bootstrap {
namespace {

/// Ranks that are let in, so that a job of any size needs few descriptors.
constexpr std::size_t kMostAtATime = 64;

std::vector<Acceptor::Listener> listeners_of(const std::vector<UniqueFd>& listeners) {
  std::vector<Acceptor::Listener> entries;
  entries.reserve(listeners.size());
  for (const UniqueFd& listener : listeners) entries.push_back({listener.get(), false});
  return entries;
}

}  // namespace

Result<RootServer::Wakeup> RootServer::Wakeup::make() {
  Wakeup wakeup{UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), {}};
  if (wakeup.heard) return wakeup;
  int ends[2];  // a sandbox may forbid eventfd
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return system_error(errno, "pipe2");
  return Wakeup{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void RootServer::Wakeup::ring() const {
  constexpr std::uint64_t kRing = 1;
  // If it fails, it was rung so often that it will be heard.
  [[maybe_unused]] const ssize_t written =
      ::write(rung ? rung.get() : heard.get(), &kRing, sizeof kRing);
}

RootServer::RootServer(std::vector<UniqueFd> listeners, Wakeup wakeup, SocketSet sockets,
                       Trust trust, RelayTree tree)
    : owner_(::getpid()),
      wakeup_(std::move(wakeup)),
      trust_(trust),
      tree_(tree),
      listeners_(std::move(listeners)),
      acceptor_(listeners_of(listeners_), Secrets([this](std::uint32_t meeting) {
                  const auto found = meetings_.find(meeting);
                  const bool is_open = found != meetings_.end() && found->second.root.is_open();
                  return is_open ? std::optional(found->second.secret) : std::nullopt;
                }),
                kToRoot, trust),
      sockets_(std::move(sockets)) {}

Result<std::unique_ptr<RootServer>> RootServer::start(std::vector<UniqueFd> listeners,
                                                      const Secret& secret, Trust trust,
                                                      RelayTree tree, std::uint32_t meeting) {
  ANYCCL_TRY(Wakeup wakeup, Wakeup::make());
  ANYCCL_TRY(SocketSet sockets, SocketSet::make());
  std::unique_ptr<RootServer> server(
      new RootServer(std::move(listeners), std::move(wakeup), std::move(sockets), trust, tree));
  server->serve(meeting, secret);
  const SignalsBlocked blocked;
  try {
    server->thread_ = std::thread([&server = *server] {
      ::pthread_setname_np(::pthread_self(), "anyccl-root");
      server.run();
    });
  } catch (const std::system_error& problem) {
    return system_error(problem.code().value(), "starting the root server's thread");
  }
  return server;
}

bool RootServer::serve(std::uint32_t meeting, const Secret& secret) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return false;
  GroupRoot root(acceptor_, sockets_, trust_, tree_, [this] { close_unless_open(); });
  meetings_.emplace(meeting, Served{secret, std::move(root)});
  return true;
}

bool RootServer::serves(std::uint32_t meeting) const {
  const std::lock_guard lock(mutex_);
  return meetings_.contains(meeting);
}

/// All meetings are over when it returns.
void RootServer::run() {
  std::unique_lock lock(mutex_);
  try {
    for (Status problem; problem.ok() && !meetings_.empty();) {
      problem = poll_once(lock);
      forget_finished();
    }
  } catch (const std::bad_alloc&) {  // the ranks hear of it when their connections end
    log_text(LogLevel::warn, "rank 0 has no memory to bring the ranks together");
  }
  meetings_.clear();
  close_unless_open();
  ended_.notify_all();
}

Status RootServer::poll_once(std::unique_lock<std::mutex>& lock) {
  std::vector<pollfd> entries{{wakeup_.heard.get(), POLLIN, 0}, {sockets_.fd(), POLLIN, 0}};
  constexpr std::size_t kOwn = 2;
  std::size_t arriving = 0;
  for (const auto& [number, meeting] : meetings_) arriving += meeting.root.arriving();
  acceptor_.let_in_at_most(kMostAtATime - std::min(kMostAtATime, arriving));
  acceptor_.append_wanted(entries);
  const std::size_t accepting = entries.size() - kOwn;
  std::vector<Polled> polled;
  int wait = acceptor_.poll_ms(std::numeric_limits<int>::max());
  for (auto& [number, meeting] : meetings_) {
    const std::size_t before = entries.size();
    meeting.root.append_wanted(entries);
    polled.push_back({&meeting, entries.size() - before});
    wait = meeting.root.poll_ms(wait);
  }
  lock.unlock();
  const int found = ::poll(entries.data(), entries.size(), wait);
  const int problem = errno;
  lock.lock();
  if (found < 0 && problem != EINTR) return system_error(problem, "root server: poll");
  if (found < 0)
    for (pollfd& entry : entries) entry.revents = 0;
  std::uint64_t rung = 0;
  if (entries[0].revents != 0) static_cast<void>(::read(wakeup_.heard.get(), &rung, sizeof rung));
  let_in(std::span(entries).subspan(kOwn, accepting));
  const std::vector<int> ready =
      entries[1].revents != 0 ? sockets_.ready_sockets() : std::vector<int>();
  std::size_t next = kOwn + accepting;
  for (const Polled& one : polled) {
    one.meeting->root.progress(std::span(entries).subspan(next, one.entries), ready);
    next += one.entries;
  }
  return {};
}

void RootServer::let_in(std::span<const pollfd> entries) {
  if (is_closed_) return;
  const Status why = acceptor_.progress(entries);
  warn_of_refused();
  for (Connection& connection : acceptor_.take_authenticated()) {
    const auto found = meetings_.find(connection.meeting);
    if (found == meetings_.end() || !found->second.root.is_open()) continue;
    found->second.root.admit(std::move(connection));
  }
  if (why.ok()) return;
  for (auto& [number, meeting] : meetings_)
    if (meeting.root.has_begun()) meeting.root.fail_to_accept(why);
}

/// Warns of the first one only, and at once: the ranks that are here may wait for long.
void RootServer::warn_of_refused() {
  if (warned_ || acceptor_.last_refused().empty()) return;
  warned_ = true;
  log(LogLevel::warn,
      "a process at {} wanted to join and was refused, as it knows another secret: it belongs to "
      "another job, or its ANYCCL_SECRET differs",
      acceptor_.last_refused());
}

void RootServer::forget_finished() {
  if (std::erase_if(meetings_, [](const auto& m) { return m.second.root.finished(); }) == 0) return;
  close_unless_open();
  ended_.notify_all();
}

/// Called before ranks hear that their group is formed: if they meet again at this port, they must
/// not meet this server.
void RootServer::close_unless_open() {
  const bool is_open = std::any_of(meetings_.begin(), meetings_.end(),
                                   [](const auto& m) { return m.second.root.is_open(); });
  if (is_open) return;
  is_closed_ = true;
  acceptor_.close();
  // A forked child may hold copies of them, so closing is not enough.
  for (const UniqueFd& listener : listeners_) ::shutdown(listener.get(), SHUT_RDWR);
  listeners_.clear();
}

void RootServer::stop_meeting(Served& meeting, bool when_told) {
  meeting.root.stop(when_told);
  wakeup_.ring();
}

void RootServer::end_meeting(std::uint32_t meeting, bool when_told) {
  if (::getpid() != owner_) return;
  std::unique_lock lock(mutex_);
  const auto found = meetings_.find(meeting);
  if (found == meetings_.end()) return;
  stop_meeting(found->second, when_told);
  ended_.wait(lock, [&] { return !meetings_.contains(meeting); });
}

void RootServer::end_all(bool when_told) {
  if (!thread_.joinable()) return;
  if (::getpid() != owner_) {
    thread_.detach();  // It does not exist in this process.
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    for (auto& [number, meeting] : meetings_) stop_meeting(meeting, when_told);
  }
  thread_.join();
}

}  // namespace anyccl::bootstrap
