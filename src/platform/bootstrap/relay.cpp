#include "platform/bootstrap/relay.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl::bootstrap {
namespace {

std::vector<Acceptor::Listener> listeners_of(int host, const Listeners* listeners, Trust trust) {
  std::vector<Acceptor::Listener> all;
  if (host >= 0) all.push_back({host, true});
  if (listeners == nullptr) return all;
  all.push_back({listeners->unix_socket.get(), true});
  if (trust == Trust::same_user) return all;
  for (const TcpListener& tcp : listeners->tcp) all.push_back({tcp.socket.get(), false});
  return all;
}

}  // namespace

Relay::Relay(UniqueFd host, const Listeners* listeners, const Secret& secret, Trust trust)
    : host_(std::move(host)),
      acceptor_(listeners_of(host_.get(), listeners, trust), secret, kToRelay, trust) {}

void Relay::append_wanted(std::vector<pollfd>& entries) const {
  for (const Member& m : waiting_) entries.push_back({m.socket.get(), m.events(), 0});
  acceptor_.append_wanted(entries);
}

void Relay::progress(std::span<const pollfd> entries) {
  const std::size_t waiting = waiting_.size();
  for (std::size_t i = 0; i < waiting; ++i)
    if (entries[i].revents != 0) serve(waiting_[i]);
  std::erase_if(waiting_, [](const Member& m) { return !m.socket; });
  if (const Status s = acceptor_.progress(entries.subspan(waiting)); !s.ok()) {
    log(LogSubsystem::net, "this rank lets in no more ranks to wait here: {}", s.message());
    close();
  }
  for (Connection& connection : acceptor_.take_authenticated()) admit(std::move(connection));
}

void Relay::serve(Member& m) {
  if (!reply_.payload)
    hear(m);
  else if (m.is_told(true))
    m.socket.reset();
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
    m.socket.reset();
    return;
  }
}

void Relay::admit(Connection connection) {
  if (reply_.payload) return;
  Member m;
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

/// A rank that has heard the answer and meets the others again must not meet this leader.
void Relay::close() {
  acceptor_.close();
  // A forked child may hold a copy, so closing is not enough.
  if (host_) ::shutdown(host_.get(), SHUT_RDWR);
  host_.reset();
}

}  // namespace anyccl::bootstrap
