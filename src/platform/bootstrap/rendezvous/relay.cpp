#include "platform/bootstrap/rendezvous/relay.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl::bootstrap {
namespace {

std::vector<Acceptor::Listener> host_listener(int host) {
  if (host < 0) return {};
  return {{host, true}};
}

/// Returns only the unix socket with Trust::same_user, else the TCP sockets, too.
std::vector<Acceptor::Listener> listeners_of(const Listeners& listeners, Trust trust) {
  std::vector<Acceptor::Listener> all{{listeners.unix_socket.get(), true}};
  if (trust == Trust::same_user) return all;
  for (const TcpListener& tcp : listeners.tcp) all.push_back({tcp.socket.get(), false});
  return all;
}

}  // namespace

Relay::Relay(UniqueFd host, const Secret& secret, Trust trust)
    : host_(std::move(host)), secret_(secret), trust_(trust) {
  acceptors_.emplace_back(host_listener(host_.get()), secret, kToRelay, trust);
}

void Relay::let_leaders_in(const Listeners& listeners) {
  acceptors_.emplace_back(listeners_of(listeners, trust_), secret_, kToRelay, trust_);
}

void Relay::append_wanted(std::vector<pollfd>& entries) const {
  for (const Member& m : waiting_) entries.push_back({m.socket.get(), m.events(), 0});
  for (const Acceptor& acceptor : acceptors_) acceptor.append_wanted(entries);
}

int Relay::poll_ms(int most) const {
  for (const Acceptor& acceptor : acceptors_) most = acceptor.poll_ms(most);
  return most;
}

void Relay::progress(std::span<const pollfd> entries) {
  const std::size_t waiting = waiting_.size();
  for (std::size_t i = 0; i < waiting; ++i)
    if (entries[i].revents != 0) serve(waiting_[i]);
  entries = entries.subspan(waiting);
  std::erase_if(waiting_, [](const Member& m) { return !m.socket; });
  for (std::size_t i = 0; i < acceptors_.size(); ++i) {
    Acceptor& acceptor = acceptors_[i];
    const std::span<const pollfd> own = entries.first(acceptor.wanted());
    entries = entries.subspan(own.size());
    if (const Status s = acceptor.progress(own); !s.ok()) {
      log(LogSubsystem::net, "this rank lets in no more ranks to wait here: {}", s.message());
      acceptor.close();
      if (i == kOfHost) close_host();
    }
    for (Connection& connection : acceptor.take_authenticated()) {
      admit(std::move(connection), i == kOfHost);
    }
  }
  if (of_host_ >= kMostOfHost) close_host();
}

void Relay::serve(Member& m) {
  if (!reply_.payload) return hear(m);
  std::vector<HelloFrame> late;  // they come again
  if (m.send_rest(true, late)) m.socket.reset();
}

/// A rank says hello for itself first.
void Relay::hear(Member& m) {
  for (;;) {
    std::optional<Report> report = m.read_report();
    if (!report) return;
    const bool left = report->left == m.rank;
    const bool came = !report->hellos.empty() && report->hellos.front().hello.rank == m.rank;
    m.came = m.came || came;
    if (m.came) reports_.push_back(*std::move(report));
    if (!left && m.came) continue;
    if (m.of_host && !m.came) --of_host_;
    m.socket.reset();
    return;
  }
}

void Relay::admit(Connection connection, bool of_host) {
  if (reply_.payload) return;
  Member m;
  m.of_host = of_host;
  if (of_host) ++of_host_;
  m.socket = std::move(connection.socket);
  m.session = connection.session;
  m.rank = connection.from;
  waiting_.push_back(std::move(m));
}

Status Relay::answer(FinalReply reply) {
  reply_ = std::move(reply);
  close();
  for (Member& m : waiting_) {
    ANYCCL_CHECK(m.put(reply_));
    serve(m);
  }
  std::erase_if(waiting_, [](const Member& m) { return !m.socket; });
  return {};
}

/// Lets nobody in any more: a rank that has heard the answer and meets the others again must not
/// meet this leader.
void Relay::close() {
  close_host();
  acceptors_.clear();
}

/// The name is free, then, and the next rank that finds it so leads those that come later.
void Relay::close_host() {
  if (!host_) return;
  acceptors_[kOfHost].close();
  ::shutdown(host_.get(), SHUT_RDWR);  // a forked child may hold a copy, so closing is not enough
  host_.reset();
}

}  // namespace anyccl::bootstrap
