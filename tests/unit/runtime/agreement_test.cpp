// What ranks that agree who of them is left say where the limits of their calls end.

#include "runtime/members/agreement.hpp"

#include <future>

#include "platform/link/link.hpp"
#include "platform/transports/unix_socket/unix_transport.hpp"
#include "support/ranks.hpp"
#include "support/transports.hpp"
#include "unit/framework/fake_peers.hpp"

namespace anyccl::test {
namespace {

constexpr int kRanks = 3;
constexpr auto kEnough = std::chrono::seconds(60);
constexpr auto kShort = std::chrono::milliseconds(50);

/// Three ranks in this process, each with its links and its half of the agreement.
class Limits : public testing::Test {
 protected:
  Limits() {
    for (int a = 0; a < kRanks; ++a)
      for (int b = a + 1; b < kRanks; ++b) {
        Ends ends = connected_on_one_host();
        inheritances_[a].links.push_back({Rank{b}, link(std::move(ends[0]), b), true, false});
        inheritances_[b].links.push_back({Rank{a}, link(std::move(ends[1]), a), true, false});
      }
    for (int r = 0; r < kRanks; ++r) {
      std::vector<Rank> others;
      for (int other = 0; other < kRanks; ++other)
        if (other != r) others.push_back(Rank{other});
      Membership m;
      m.rank = Rank{r};
      m.size = kRanks;
      m.near_of.assign(kRanks, 0);
      m.transports.push_back(std::make_unique<PresentPeers>(std::move(others)));
      comms_[r] = std::make_shared<Comm>(std::move(m));
    }
  }

  static std::shared_ptr<link::Link> link(UniqueFd socket, int peer) {
    std::shared_ptr<link::Link> made(
        new link::Link(unix_socket::unix_socket(), nullptr, Rank{peer}, {}));
    require(made->attach(std::move(socket), nullptr).ok(), "attach");
    return made;
  }
  std::shared_ptr<Agreement> come(int rank) {
    auto made = Agreement::among(*comms_[rank], inheritances_[rank]);
    require(made.ok(), "among");
    return *std::move(made);
  }
  /// Rank 0 has come, names the two others, and asks again without rank 2: what rank 1 hears first.
  std::shared_ptr<Agreement> come_and_give_up() {
    auto first = come(0);
    EXPECT_EQ(first->decide({}, Deadline::in(kShort)).status().code(), Code::timeout);
    first->leave_out(Rank{2});
    EXPECT_EQ(first->decide({}, Deadline::in(kShort)).status().code(), Code::timeout);
    return first;
  }

  Inheritance inheritances_[kRanks];
  std::shared_ptr<Comm> comms_[kRanks];
};

TEST_F(Limits, name_all_that_have_not_come) {
  const Status late = come(0)->decide({}, Deadline::in(kShort)).status();
  EXPECT_EQ(late.code(), Code::timeout);
  for (const char* who : {"rank 1", "rank 2"})
    EXPECT_NE(late.message().find(who), std::string::npos);
}

TEST_F(Limits, do_not_end_a_decision_that_is_on_its_way) {
  const auto first = come_and_give_up();
  const auto second = come(1);
  auto decision = std::async([&] { return second->decide({}, Deadline::in(kShort)); });
  const auto led = first->decide({}, Deadline::in(kEnough));
  ASSERT_OK(led.status());
  const auto followed = decision.get();
  ASSERT_OK(followed.status());
  EXPECT_EQ(followed->gone, (std::vector<bool>{false, false, true}));
}

TEST_F(Limits, name_no_rank_as_missing_that_has_come) {
  const auto first = come_and_give_up();
  const Status late = come(1)->decide({}, Deadline::in(kShort)).status();
  EXPECT_EQ(late.code(), Code::timeout);
  EXPECT_EQ(late.message().find("nothing has come of"), std::string::npos) << late.message();
  EXPECT_NE(late.message().find("all ranks that are left have come"), std::string::npos)
      << late.message();
}

/// The links of a rank that comes late have ended; what the others have said to it is there.
TEST_F(Limits, leave_no_rank_alone_that_the_others_do_without) {
  const auto agree = [&](Agreement& one, Agreement& other) {
    auto decision = std::async([&] { return other.decide({}, Deadline::in(kEnough)); });
    EXPECT_OK(one.decide({}, Deadline::in(kEnough)).status());
    EXPECT_OK(decision.get().status());
  };
  {
    const auto first = come(0), second = come(1);
    first->leave_out(Rank{2});
    agree(*first, *second);
  }
  for (int r = 0; r < 2; ++r) inheritances_[r].links.clear();
  for (const PeerLink& peer : inheritances_[2].links) EXPECT_FALSE(peer.link->is_alive());
  const auto refused = come(2)->decide({}, Deadline::in(kEnough));
  EXPECT_EQ(refused.status().code(), Code::remote_error);
  EXPECT_NE(refused.status().message().find("does without this rank"), std::string::npos)
      << refused.status().message();
}

}  // namespace
}  // namespace anyccl::test
