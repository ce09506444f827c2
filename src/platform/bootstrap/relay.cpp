#include "platform/bootstrap/relay.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl::bootstrap {
namespace {

std::vector<Acceptor::Listener> listeners_of(const Listeners& listeners, Trust trust) {
  std::vector<Acceptor::Listener> all{{listeners.unix_socket.get(), true}};
  if (trust == Trust::same_user) return all;
  for (const TcpListener& tcp : listeners.tcp) all.push_back({tcp.socket.get(), false});
  return all;
}

}  // namespace

Relay::Relay(const Listeners& listeners, const Secret& secret, Trust trust,
             const RelayTree::Ranks& receivers)
    : acceptor_(listeners_of(listeners, trust), secret, kToRelay, trust), receivers_(receivers) {}

void Relay::append_wanted(std::vector<pollfd>& entries) const {
  for (const Member& m : waiting_) entries.push_back({m.socket.get(), m.events(), 0});
  acceptor_.append_wanted(entries);
}

Status Relay::progress(std::span<const pollfd> entries) {
  const std::size_t waiting = waiting_.size();
  for (std::size_t i = 0; i < waiting; ++i)
    if (entries[i].revents != 0) ANYCCL_CHECK(serve(waiting_[i]));
  std::erase_if(waiting_, [](const Member& m) { return !m.socket; });
  ANYCCL_CHECK(acceptor_.progress(entries.subspan(waiting)));
  for (Connection& connection : acceptor_.take_authenticated()) admit(std::move(connection));
  return {};
}

Status Relay::serve(Member& m) {
  if (!reply_.payload) return hear(m);
  if (m.is_told(true)) m.socket.reset();
  return {};
}

/// The first news of a rank is that it is here itself.
Status Relay::hear(Member& m) {
  for (;;) {
    ANYCCL_TRY(const std::optional<News> news, m.read_news());
    if (!news) return {};
    const bool left = news->left != 0 && news->rank == m.rank;
    const bool came = news->left == 0 && news->rank == m.rank;
    m.came = m.came || came;
    if (m.came) news_.push_back(*news);
    if (!left && m.came) continue;
    m.socket.reset();
    return {};
  }
}

void Relay::admit(Connection connection) {
  if (reply_.payload || !receivers_.contains(connection.from)) {
    log(LogSubsystem::net, "dropped a connection of rank {}, which is not expected here",
        connection.from);
    return;
  }
  Member m;
  m.socket = std::move(connection.socket);
  m.session = connection.session;
  m.rank = connection.from;
  m.expect_news();
  waiting_.push_back(std::move(m));
}

Status Relay::answer(FinalReply reply) {
  reply_ = std::move(reply);
  acceptor_.close();
  for (Member& m : waiting_) {
    ANYCCL_CHECK(m.put(reply_));
    ANYCCL_CHECK(serve(m));
  }
  std::erase_if(waiting_, [](const Member& m) { return !m.socket; });
  return {};
}

}  // namespace anyccl::bootstrap
