// The connection of a leader to the root server breaks after any part of any message: nobody waits
// for long.

#include <sys/eventfd.h>

#include <array>
#include <atomic>

#include "large_group.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;

/// Passes bytes on between the root server and those that connect here; the first connection breaks
/// after so many bytes in one direction.
class BreakingProxy {
 public:
  BreakingProxy(Endpoint root, bool upwards, std::size_t bytes)
      : root_(std::move(root)), upwards_(upwards), left_(bytes) {
    Result<TcpListener> listener = listen_tcp({4, 0, 0, {127, 0, 0, 1}});
    endpoint_ = {"", listener->address};
    listener_ = std::move(listener->socket);
    thread_ = std::thread([this] { run(); });
  }
  BreakingProxy(const BreakingProxy&) = delete;
  BreakingProxy& operator=(const BreakingProxy&) = delete;
  ~BreakingProxy() {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
  }
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  struct Pair {
    UniqueFd down, up;
    bool breaks = false;
  };
  void run() {
    for (;;) {
      std::vector<pollfd> entries{{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        entries.push_back({pair.down.get(), POLLIN, 0});
        entries.push_back({pair.up.get(), POLLIN, 0});
      }
      ::poll(entries.data(), entries.size(), -1);
      if (entries[0].revents != 0) return;
      for (std::size_t i = 0; i < pairs_.size(); ++i) {
        if (entries[2 + 2 * i].revents != 0) pass(pairs_[i], true);
        if (entries[3 + 2 * i].revents != 0) pass(pairs_[i], false);
      }
      std::erase_if(pairs_, [](const Pair& pair) { return !pair.up; });
      if (entries[1].revents != 0) accept();
    }
  }
  void accept() {
    Result<UniqueFd> down = accept_from(listener_.get());
    if (!down.ok() || !*down) return;
    try {
      pairs_.push_back({*std::move(down), connect_to(root_), first_});
    } catch (const std::runtime_error&) {  // The server listens no more, so this does not, either.
      listener_.reset();
    }
    first_ = false;
  }
  void pass(Pair& pair, bool upwards) {
    if (!pair.up) return;
    const bool counts = pair.breaks && upwards == upwards_;
    std::array<std::byte, 4096> bytes;
    const std::size_t most = counts ? std::min(left_, bytes.size()) : bytes.size();
    const UniqueFd& from = upwards ? pair.down : pair.up;
    const UniqueFd& to = upwards ? pair.up : pair.down;
    const ssize_t got = ::recv(from.get(), bytes.data(), most, MSG_DONTWAIT);
    const auto passed = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    const bool sent = send_all(to.get(), Bytes(bytes).first(passed), soon(), "end").ok();
    if (counts) left_ -= passed;
    if (passed == 0 || !sent || (counts && left_ == 0)) pair = {};
  }

  Endpoint root_, endpoint_;
  bool upwards_;
  std::size_t left_;
  bool first_ = true;
  UniqueFd listener_;
  UniqueFd stop_{::eventfd(0, EFD_CLOEXEC)};
  std::vector<Pair> pairs_;
  std::thread thread_;
};

constexpr std::size_t kHelloBytes = sizeof(FrameHeader) + sizeof(HelloFrame);
// Ends of messages, in bytes from the beginning.
constexpr std::size_t kUp[] = {sizeof(Greeting), sizeof(Greeting) + sizeof(Mac),
                               sizeof(Greeting) + sizeof(Mac) + kHelloBytes,
                               sizeof(Greeting) + sizeof(Mac) + 2 * kHelloBytes};
constexpr std::size_t kDown[] = {
    sizeof(Answer), sizeof(Answer) + sizeof(Mac),
    sizeof(Answer) + sizeof(Mac) + sizeof(FrameHeader) + sizeof(Place),
    sizeof(Answer) + sizeof(Mac) + 2 * sizeof(FrameHeader) + sizeof(Place)};

class LeaderCut : public LargeGroup {
 protected:
  /// Ranks 0 to 2 are on a host behind the proxy, 3 and 4 on another.
  void join_through_break(bool upwards, std::size_t bytes) {
    start({2, 2});
    const BreakingProxy proxy(meeting_.endpoints.front(), upwards, bytes);
    std::atomic<int> joined_behind = 0;
    in_threads(5, [&](int rank) {
      const bool behind = rank < 3;
      RendezvousAddress meeting = meeting_;
      if (behind) meeting.endpoints = {proxy.endpoint()};
      const Member member = make_member(rank, 5, "", {"one boot", 7, behind ? "a" : "b"});
      const Result<Group> group = join_at(meeting, member.hello, soon(), &member.listeners);
      if (behind && group.ok()) ++joined_behind;
      EXPECT_TRUE(group.ok() || group.status().code() == Code::remote_error)
          << message_of(group) << "; " << bytes << " bytes";
    });
    EXPECT_TRUE(joined_behind == 0 || joined_behind == 3) << joined_behind.load();
  }
};

TEST_F(LeaderCut, around_the_end_of_each_message_that_goes_up_ends_every_wait) {
  for (const std::size_t end : kUp)
    for (const std::size_t bytes : {end - 1, end, end + 1, end + sizeof(FrameHeader)}) {
      SCOPED_TRACE(bytes);
      join_through_break(true, bytes);
    }
}

TEST_F(LeaderCut, around_the_end_of_each_message_that_comes_down_ends_every_wait) {
  for (const std::size_t end : kDown)
    for (const std::size_t bytes : {end - 1, end, end + 1, end + 200}) {
      SCOPED_TRACE(bytes);
      join_through_break(false, bytes);
    }
}

}  // namespace
}  // namespace anyccl::bootstrap
