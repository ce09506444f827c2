#pragma once

#include <poll.h>

#include <span>
#include <vector>

#include "platform/bootstrap/acceptor.hpp"
#include "platform/bootstrap/listeners.hpp"
#include "platform/bootstrap/receiver.hpp"
#include "platform/bootstrap/relay_tree.hpp"

namespace anyccl::bootstrap {

/// What a rank of a large group does for the ranks that it tells the root server's answer: it lets
/// them in, notices when one leaves, and sends them the answer. The caller polls.
class Relay {
 public:
  /// `listeners`, where `receivers` call, outlive it. With Trust::same_user only over unix sockets.
  Relay(const Listeners& listeners, const Secret& secret, Trust trust,
        const RelayTree::Ranks& receivers);

  /// Appends what to poll for. The same number of entries goes to progress().
  void append_wanted(std::vector<pollfd>& entries) const;
  /// When to call progress() even if nothing happened: milliseconds, at most `most`.
  int poll_ms(int most) const { return acceptor_.poll_ms(most); }
  /// Goes on as far as possible. Errors: system_error when no connection can be accepted, or
  /// libcrypto fails.
  Status progress(std::span<const pollfd> entries);
  /// Of those that came, and of those that they tell, since the last call; none after the answer.
  std::vector<News> take_news() { return std::exchange(news_, {}); }

  /// The answer, for those that are here. Others hear it from the root server.
  Status answer(FinalReply reply);
  /// Every rank that was here has the answer, or has gone.
  bool all_told() const { return waiting_.empty(); }

 private:
  /// A rank that has not yet sent news of itself may go unnoticed.
  struct Member : Receiver {
    bool came = false;
  };
  void admit(Connection connection);
  Status serve(Member& member);
  Status hear(Member& member);

  Acceptor acceptor_;
  RelayTree::Ranks receivers_;
  std::vector<Member> waiting_;
  std::vector<News> news_;
  FinalReply reply_;
};

}  // namespace anyccl::bootstrap
