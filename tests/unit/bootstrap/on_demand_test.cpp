// How members of a group connect one pair at a time: who calls whom, and what comes of it.

#include "platform/bootstrap/mesh/on_demand.hpp"

#include <random>

#include "ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;
using std::chrono::milliseconds;

/// The members of a group in one thread, which lets them go on one by one.
class Ranks {
 public:
  explicit Ranks(int size, milliseconds limit = milliseconds(20000))
      : outcomes_(uindex(Rank{size})) {
    auto members = std::make_shared<std::vector<Hello>>();
    std::vector<Listeners> listeners;
    for (int r = 0; r < size; ++r) {
      Member made = make_member(r, size);
      listeners.push_back(std::move(made.listeners));
      members->push_back(made.hello);
    }
    members_ = members;
    secret_ = *Secret::random();
    for (int r = 0; r < size; ++r) add(r, std::move(listeners[uindex(Rank{r})]), members, limit);
  }
  void want(int rank, int peer) { machines_[uindex(Rank{rank})]->want(Rank{peer}); }
  void end(int rank) { machines_[uindex(Rank{rank})].reset(); }
  /// One of them looks, for `ms` at most.
  void step(int rank, int ms = 0) {
    auto& machine = machines_[uindex(Rank{rank})];
    if (machine == nullptr) return;
    std::vector<pollfd> entries;
    machine->append_wanted(entries);
    ::poll(entries.data(), entries.size(), machine->poll_ms(ms));
    machine->progress(entries);
    for (OnDemand::Outcome& outcome : machine->take_outcomes())
      outcomes_[uindex(Rank{rank})].push_back(std::move(outcome));
  }
  /// All look until `rank` has so many outcomes.
  void run_until(int rank, std::size_t count = 1) {
    for (const Deadline deadline = soon(); outcomes(rank).size() < count;) {
      ASSERT_FALSE(deadline.passed());
      for (int r = 0; r < static_cast<int>(machines_.size()); ++r) step(r, r == rank ? 1 : 0);
    }
  }
  std::vector<OnDemand::Outcome>& outcomes(int rank) { return outcomes_[uindex(Rank{rank})]; }
  /// Replaces a machine by one that believes that `peer` is where nobody answers.
  void mislead(int rank, int peer) {
    auto wrong = std::make_shared<std::vector<Hello>>(*members_);
    Member nobody = make_member(peer, static_cast<int>(members_->size()));
    // It accepts connections and is silent.
    (*wrong)[uindex(Rank{peer})].addresses = nobody.hello.addresses;
    (*wrong)[uindex(Rank{peer})].unix_name = nobody.hello.unix_name;
    silent_.push_back(std::move(nobody.listeners));
    Member again = make_member(rank, static_cast<int>(members_->size()));
    auto right = std::make_shared<std::vector<Hello>>(*members_);
    (*right)[uindex(Rank{rank})] = again.hello;
    (*wrong)[uindex(Rank{rank})] = again.hello;
    end(rank);
    end(peer);
    Member other = make_member(peer, static_cast<int>(members_->size()));
    (*right)[uindex(Rank{peer})] = other.hello;
    add(rank, std::move(again.listeners), wrong, milliseconds(20000));
    add(peer, std::move(other.listeners), right, milliseconds(20000));
  }

 private:
  void add(int rank, Listeners listeners, std::shared_ptr<const std::vector<Hello>> members,
           milliseconds limit) {
    machines_.resize(members->size());
    machines_[uindex(Rank{rank})] =
        std::make_unique<OnDemand>(std::move(listeners), std::move(members), Rank{rank}, secret_,
                                   true, *OwnNetwork::find(), limit);
  }

  std::shared_ptr<const std::vector<Hello>> members_;
  Secret secret_;
  std::vector<std::unique_ptr<OnDemand>> machines_;
  std::vector<std::vector<OnDemand::Outcome>> outcomes_;
  std::vector<Listeners> silent_;
};

/// What goes in at one end comes out at the other, both ways.
void expect_one_connection(OnDemand::Outcome& a, OnDemand::Outcome& b) {
  ASSERT_OK(a.problem);
  ASSERT_OK(b.problem);
  for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const int sent = index(from->peer);
    int got = -1;
    ASSERT_OK(send_all(from->socket.fd.get(), bytes_of(sent), soon(), "peer"));
    ASSERT_OK(
        recv_all(to->socket.fd.get(), std::as_writable_bytes(std::span(&got, 1)), soon(), "peer"));
    EXPECT_EQ(got, sent);
  }
  EXPECT_EQ(a.socket.session, b.socket.session);
}

TEST(OnDemand, a_rank_reaches_higher_and_lower_ones) {
  for (const int from : {0, 2}) {
    const int to = 2 - from;
    Ranks group(3);
    group.want(from, to);
    group.run_until(from);
    group.run_until(to);
    expect_one_connection(group.outcomes(from)[0], group.outcomes(to)[0]);
    EXPECT_TRUE(group.outcomes(1).empty());
  }
}

TEST(OnDemand, two_ranks_that_call_each_other_have_one_connection) {
  std::mt19937 random(20251124);
  for (int round = 0; round < 60; ++round) {
    Ranks group(2);
    const int first = static_cast<int>(random() % 2);
    group.want(first, 1 - first);
    for (auto steps = random() % 12; steps > 0; --steps)
      group.step(static_cast<int>(random() % 2), static_cast<int>(random() % 3));
    group.want(1 - first, first);
    for (auto steps = random() % 30; steps > 0; --steps)
      group.step(static_cast<int>(random() % 2), static_cast<int>(random() % 3));
    group.run_until(0);
    group.run_until(1);
    ASSERT_EQ(group.outcomes(0).size(), 1U);
    ASSERT_EQ(group.outcomes(1).size(), 1U);
    expect_one_connection(group.outcomes(0)[0], group.outcomes(1)[0]);
  }
}

TEST(OnDemand, a_rank_that_has_committed_itself_lets_the_other_end_not_in) {
  auto members = std::make_shared<std::vector<Hello>>();
  Member lower = make_member(0, 2), higher = make_member(1, 2);
  *members = {lower.hello, higher.hello};
  const Secret secret = *Secret::random();
  const std::vector<Endpoint> door{{"", higher.listeners.tcp.back().address}};
  OnDemand machine(std::move(higher.listeners), members, Rank{1}, secret, true, *OwnNetwork::find(),
                   milliseconds(20000));
  const auto step = [&] {
    std::vector<pollfd> entries;
    machine.append_wanted(entries);
    ::poll(entries.data(), entries.size(), 1);
    machine.progress(entries);
  };
  std::vector<Acceptor::Listener> listeners;
  for (const TcpListener& tcp : lower.listeners.tcp) listeners.push_back({tcp.socket.get(), false});
  Acceptor acceptor(listeners, secret, 0, Trust::secret);
  const auto answer = [&] {
    std::vector<pollfd> entries;
    acceptor.append_wanted(entries);
    ::poll(entries.data(), entries.size(), 1);
    EXPECT_OK(acceptor.progress(entries));
  };
  machine.want(Rank{0});
  for (int i = 0; i < 5; ++i) step(), i < 2 ? answer() : void();  // its proof is on its way
  Dial dial(secret, {door, 0, 1});
  for (int i = 0; i < 50; ++i) {
    step();
    ASSERT_OK(dial.advance());
    ASSERT_FALSE(dial.done());
  }
  std::vector<Connection> taken;
  for (const Deadline deadline = soon(); taken.empty(); taken = acceptor.take_authenticated()) {
    ASSERT_FALSE(deadline.passed());
    step();
    answer();
  }
  EXPECT_EQ(taken[0].from, 1U);
  std::vector<OnDemand::Outcome> outcomes;
  for (const Deadline deadline = soon(); outcomes.empty(); outcomes = machine.take_outcomes()) {
    ASSERT_FALSE(deadline.passed());
    step();
  }
  EXPECT_OK(outcomes[0].problem);
}

TEST(OnDemand, a_rank_that_others_cannot_reach_calls_them_itself) {
  Ranks group(2);
  group.mislead(1, 0);  // rank 1, whose call counts, gets no answer
  group.want(1, 0);
  group.want(0, 1);
  group.run_until(0);
  group.run_until(1);
  expect_one_connection(group.outcomes(0)[0], group.outcomes(1)[0]);
}

TEST(OnDemand, a_rank_that_is_gone_is_said_to_be) {
  for (const int gone : {0, 1}) {
    Ranks group(2);
    group.end(gone);
    group.want(1 - gone, gone);
    group.run_until(1 - gone);
    const Status problem = group.outcomes(1 - gone)[0].problem;
    EXPECT_EQ(problem.code(), Code::remote_error);
    EXPECT_TRUE(contains(problem.message(), "it died or has left")) << problem.message();
    EXPECT_TRUE(contains(problem.message(), "cannot reach rank " + std::to_string(gone)));
  }
}

TEST(OnDemand, a_rank_that_does_not_answer_is_given_up_in_time) {
  Ranks group(2, milliseconds(50));
  group.want(1, 0);
  for (const Deadline deadline = soon(); group.outcomes(1).empty();) {
    ASSERT_FALSE(deadline.passed());
    group.step(1, 1);
  }
  const Status problem = group.outcomes(1)[0].problem;
  EXPECT_EQ(problem.code(), Code::timeout);
  EXPECT_TRUE(contains(problem.message(), "it accepted the connection and did not answer"))
      << problem.message();
}

TEST(OnDemand, many_ranks_connect_as_they_are_wanted) {
  constexpr int kRanks = 9;
  Ranks group(kRanks);
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    const int a = static_cast<int>(random() % kRanks), b = static_cast<int>(random() % kRanks);
    if (a != b) group.want(a, b);
    group.step(static_cast<int>(random() % kRanks));
  }
  for (int r = 1; r < kRanks; ++r) group.want(0, r);
  group.run_until(0, kRanks - 1);
  for (OnDemand::Outcome& outcome : group.outcomes(0)) EXPECT_OK(outcome.problem);
}

}  // namespace
}  // namespace anyccl::bootstrap
