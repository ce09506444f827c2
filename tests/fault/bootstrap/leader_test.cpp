// Ranks of a large group join through the leader of their host. A host is what a rank names as one.

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <future>

#include "large_group.hpp"
#include "platform/bootstrap/rendezvous/host_meeting.hpp"
#include "platform/bootstrap/rendezvous/receiver.hpp"
#include "platform/bootstrap/rendezvous/relay.hpp"
#include "platform/bootstrap/rendezvous/uplink.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;
using std::chrono::milliseconds;

class HostLeaders : public LargeGroup {
 protected:
  void SetUp() override { start({2, 2}); }

  static Member member_at(int host, int rank, int size) {
    return make_member(rank, size, "", {"one boot", 7, "host " + std::to_string(host)});
  }
  Result<Group> join_as(const Member& member, Deadline deadline = soon()) {
    return join_at(meeting_, member.hello, deadline, &member.listeners);
  }
  /// Joins as all ranks, rank r at `hosts`[r], and expects that all get one table.
  void expect_all_join(const std::vector<int>& hosts) {
    const int size = static_cast<int>(hosts.size());
    std::vector<Secret> secrets(hosts.size());
    in_threads(size, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const Member member = member_at(hosts[r], rank, size);
      const Result<Group> group = join_as(member);
      ASSERT_OK(group.status());
      ASSERT_EQ(group->members.size(), hosts.size());
      EXPECT_EQ(unix_name_of(group->members[r]), member.listeners.unix_name);
      secrets[r] = group->secret;
    });
    for (const Secret& secret : secrets) EXPECT_EQ(secret, secrets[0]);
  }
  /// Joins as each of `ranks`, {host, rank}, of a group of `size`; each must fail, saying `text`.
  void expect_all_hear(const std::vector<std::pair<int, int>>& ranks, int size, Code code,
                       std::string_view text, Deadline deadline = soon()) {
    in_threads(static_cast<int>(ranks.size()), [&](int i) {
      const auto [host, rank] = ranks[static_cast<std::size_t>(i)];
      const Result<Group> group = join_as(member_at(host, rank, size), deadline);
      EXPECT_EQ(group.status().code(), code) << message_of(group);
      EXPECT_TRUE(contains(message_of(group), text)) << message_of(group);
    });
  }
  std::string name_at(const Member& member) { return *name_of_meeting(meeting_, member.hello); }
};

std::vector<int> hosts_of_sizes(const std::vector<int>& sizes) {
  std::vector<int> hosts;
  for (std::size_t host = 0; host < sizes.size(); ++host)
    hosts.insert(hosts.end(), static_cast<std::size_t>(sizes[host]), static_cast<int>(host));
  return hosts;
}

TEST_F(HostLeaders, join_three_hosts_of_forty_ranks) {
  start({});
  expect_all_join(hosts_of_sizes({40, 40, 40}));
}

TEST_F(HostLeaders, join_hosts_of_any_sizes) {
  expect_all_join(hosts_of_sizes({1, 7, 1, 20, 2, 1, 1, 3}));
}

TEST_F(HostLeaders, join_ranks_that_take_turns_among_hosts) {
  std::vector<int> hosts;
  for (int rank = 0; rank < 40; ++rank) hosts.push_back(rank % 5);
  expect_all_join(hosts);
}

TEST_F(HostLeaders, join_ranks_of_one_host) {
  expect_all_join(hosts_of_sizes({12}));
}

TEST_F(HostLeaders, join_more_ranks_of_one_host_than_a_leader_lets_in) {
  start({});
  expect_all_join(hosts_of_sizes({2 * Relay::kMostOfHost + 3}));
}

TEST_F(HostLeaders, give_their_name_up_when_they_have_as_many_ranks_as_they_let_in) {
  constexpr int kSize = Relay::kMostOfHost + 2;
  const Member leader = member_at(0, 0, kSize);
  auto joined = std::async([&] { return join_as(leader); });
  std::vector<Connection> others;
  for (std::uint32_t rank = 1; rank <= Relay::kMostOfHost; ++rank)
    others.push_back(call({{name_at(leader), {}}}, rank, kToRelay));
  const Deadline limit = soon();
  Result<UniqueFd> next = listen_unix(name_at(leader));
  for (; !next.ok() && !limit.passed(); next = listen_unix(name_at(leader)))
    std::this_thread::yield();
  EXPECT_OK(next.status());
  server_->stop();
  EXPECT_FALSE(joined.get().ok());
}

TEST_F(HostLeaders, join_ranks_of_one_user) {
  start({2, 2}, Trust::same_user);
  expect_all_join(hosts_of_sizes({4, 4, 4, 4}));
}

TEST_F(HostLeaders, of_two_meetings_at_once_do_not_mix) {
  const RendezvousAddress first = meeting_;
  const auto first_server = std::move(server_);
  start({2, 2});
  in_threads(12, [&](int i) {
    const Member member = member_at(0, i / 2, 6);
    const RendezvousAddress& meeting = i % 2 == 0 ? first : meeting_;
    EXPECT_OK(join_at(meeting, member.hello, soon(), &member.listeners).status());
  });
}

TEST_F(HostLeaders, name_missing_ranks_to_everyone) {
  expect_all_hear({{0, 0}, {0, 1}, {1, 3}, {1, 4}, {2, 5}, {3, 7}}, 8, Code::timeout,
                  "missing: 2, 6", Deadline::in(milliseconds(2000)));
}

TEST_F(HostLeaders, let_in_a_rank_that_comes_late) {
  const Member late = member_at(1, 5, 6);
  in_threads(6, [&](int rank) {
    // There is a leader before the late rank begins: a silent one is not noticed.
    if (rank == 5) static_cast<void>(call({{name_at(late), {}}}, 5, kToRelay));
    const Member member = member_at(rank / 3, rank, 6);
    EXPECT_OK(join_as(rank == 5 ? late : member).status());
  });
}

TEST_F(HostLeaders, tell_everyone_of_a_rank_that_joins_twice_on_one_host) {
  expect_all_hear({{0, 0}, {0, 1}, {1, 2}, {1, 3}, {1, 3}}, 5, Code::invalid_usage,
                  "rank 3 joined twice");
}

TEST_F(HostLeaders, tell_everyone_of_a_rank_that_joins_twice_on_two_hosts) {
  expect_all_hear({{0, 0}, {0, 1}, {1, 2}, {1, 3}, {0, 3}}, 5, Code::invalid_usage,
                  "rank 3 joined twice");
}

TEST_F(HostLeaders, do_not_meet_ranks_that_know_another_secret) {
  RendezvousAddress wrong = meeting_;
  wrong.secret = *Secret::random();
  std::promise<void> refused;
  in_threads(6, [&](int i) {
    // The others wait for the last rank: the root server hears nobody once all have joined.
    if (i == 4) refused.get_future().wait();
    const Member member = member_at(0, i % 5, 5);
    const RendezvousAddress& meeting = i == 5 ? wrong : meeting_;
    const Result<Group> group = join_at(meeting, member.hello, soon(), &member.listeners);
    if (i == 5) refused.set_value();
    EXPECT_EQ(group.status().code(), i == 5 ? Code::invalid_argument : Code::ok)
        << message_of(group);
  });
}

TEST_F(HostLeaders, that_send_nonsense_count_as_gone) {
  const Member member = member_at(1, 2, 3);
  const Connection root = call(meeting_.endpoints, 2, kToRoot);
  send(root, Frame::hello, bytes_of(hello_frame_of(member)));
  EXPECT_FALSE(receive_place(root));
  std::mt19937 random = seeded();
  EXPECT_OK(send_all(root.socket.get(), random_text(random, 500), soon(), "root"));
  expect_all_hear({{0, 0}}, 3, Code::remote_error, "rank 2 left");
}

/// A process that has the name of a host's leader, and does what a test says.
struct FakeLeader {
  FakeLeader(const std::string& name, const Secret& secret)
      : listener(*listen_unix(name)),
        acceptor({{listener.get(), true}}, secret, kToRelay, Trust::secret) {}
  UniqueFd listener;
  Acceptor acceptor;
};

TEST_F(HostLeaders, whose_name_is_taken_under_another_secret_are_done_without) {
  FakeLeader stranger(name_at(member_at(0, 0, 4)), *Secret::random());
  std::atomic<bool> all_joined = false;
  std::thread answering([&] {
    while (!all_joined) {
      std::vector<pollfd> entries;
      stranger.acceptor.append_wanted(entries);
      ::poll(entries.data(), entries.size(), stranger.acceptor.poll_ms(10));
      EXPECT_OK(stranger.acceptor.progress(entries));
    }
  });
  expect_all_join({0, 0, 0, 1});
  all_joined = true;
  answering.join();
}

TEST_F(HostLeaders, whose_name_is_taken_by_a_silent_process_are_done_without) {
  const UniqueFd silent = *listen_unix(name_at(member_at(0, 0, 4)));
  expect_all_join({0, 0, 0, 1});
}

/// How far a leader gets with a rank before it goes.
enum class Until { accepted, said_hello, told_of_another_meeting, told_of_another_size };
class LeaderThatGoes : public HostLeaders, public testing::WithParamInterface<Until> {};

TEST_P(LeaderThatGoes, is_replaced) {
  auto leader = std::make_unique<FakeLeader>(name_at(member_at(0, 1, 4)), meeting_.secret);
  std::thread goes([&] {
    const Connection rank = wait_for_authenticated(leader->acceptor);
    if (GetParam() != Until::accepted) receive_hello(rank);
    if (GetParam() == Until::told_of_another_meeting) {
      std::vector<Hello> hellos;
      for (int r = 0; r < 4; ++r) hellos.push_back(member_at(0, r, 4).hello);
      send_table(rank, hellos);
    }
    if (GetParam() == Until::told_of_another_size)
      send_table(rank, {member_at(0, 0, 2).hello, member_at(0, 1, 2).hello});
    leader.reset();
  });
  expect_all_join({1, 0, 0, 0});
  goes.join();
}

std::string name_of(const testing::TestParamInfo<Until>& test) {
  switch (test.param) {
    case Until::accepted:
      return "accepting_a_rank";
    case Until::said_hello:
      return "its_hello";
    case Until::told_of_another_size:
      return "telling_of_a_meeting_of_another_size";
    default:
      return "telling_of_another_meeting";
  }
}
INSTANTIATE_TEST_SUITE_P(After, LeaderThatGoes,
                         testing::Values(Until::accepted, Until::said_hello,
                                         Until::told_of_another_meeting,
                                         Until::told_of_another_size),
                         name_of);

/// A leader that hangs after it has heard a rank.
class LeaderThatHangs : public HostLeaders {
 protected:
  void while_it_hangs(const std::function<void()>& join) {
    FakeLeader leader(name_at(member_at(0, 0, 3)), meeting_.secret);
    std::promise<void> done;
    std::thread hangs([&] {
      const Connection rank = wait_for_authenticated(leader.acceptor);
      receive_hello(rank);
      done.get_future().wait();
    });
    join();
    done.set_value();
    hangs.join();
  }
};

TEST_F(LeaderThatHangs, is_done_without) {
  while_it_hangs([&] { expect_all_join({1, 0, 1}); });
}

TEST_F(LeaderThatHangs, is_named) {
  while_it_hangs([&] {
    expect_all_hear({{0, 1}}, 3, Code::timeout,
                    "the rank that leads this host (pid " + std::to_string(::getpid()) + ")",
                    Deadline::in(milliseconds(300)));
  });
}

/// Rank 0 leads host 0, has joined, and has told the server of rank 1.
class LeaderOfRank1 : public HostLeaders {
 protected:
  struct Leading {
    Connection root, rank;
  };
  /// Until the hello of rank 1 is at the server.
  Leading lead_until_told() {
    const Member member = member_at(0, 0, 3);
    FakeLeader leader(name_at(member), meeting_.secret);
    ready_.set_value();
    Connection root = call(meeting_.endpoints, 0, kToRoot);
    send(root, Frame::hello, bytes_of(hello_frame_of(member)));
    EXPECT_FALSE(receive_place(root));
    Connection rank = wait_for_authenticated(leader.acceptor);
    send(root, Frame::hello, bytes_of(receive_hello(rank)));
    return {std::move(root), std::move(rank)};
  }
  std::promise<void> ready_;
};

TEST_F(LeaderOfRank1, that_drops_it_does_not_make_it_join_twice) {
  in_threads(2, [&](int rank) {
    if (rank == 1) {
      ready_.get_future().wait();
      EXPECT_OK(join_as(member_at(0, 1, 3)).status());
      return;
    }
    const Connection root = lead_until_told().root;
    const Member last = member_at(0, 2, 3);
    const Connection leader = call({{name_at(last), {}}}, 2, kToRelay);  // which is rank 1 now
    send(leader, Frame::hello, bytes_of(hello_frame_of(last)));
    EXPECT_EQ(next_kind(root), Frame::table);
    EXPECT_EQ(next_kind(leader), Frame::table);
  });
}

TEST_F(LeaderOfRank1, that_dies_is_named_to_it) {
  in_threads(2, [&](int rank) {
    if (rank == 0) {
      static_cast<void>(lead_until_told());
      return;
    }
    ready_.get_future().wait();
    const Result<Group> group = join_as(member_at(0, 1, 3));
    EXPECT_EQ(group.status().code(), Code::remote_error) << message_of(group);
    EXPECT_TRUE(contains(message_of(group), "rank 0 left")) << message_of(group);
  });
}

TEST_F(LeaderOfRank1, that_dies_with_the_table_when_the_server_has_gone_is_named_to_it) {
  std::promise<void> told;
  in_threads(3, [&](int rank) {
    if (rank == 0) {
      const Leading leading = lead_until_told();
      told.set_value();
      EXPECT_EQ(next_kind(leading.root), Frame::table);
    } else if (rank == 1) {
      ready_.get_future().wait();
      const Result<Group> group = join_as(member_at(0, 1, 3));
      EXPECT_EQ(group.status().code(), Code::remote_error) << message_of(group);
      EXPECT_TRUE(contains(message_of(group), "leads this host (pid ")) << message_of(group);
    } else {
      told.get_future().wait();
      EXPECT_OK(join_as(member_at(1, 2, 3)).status());
    }
  });
}

/// Goes on until the answer is there.
FinalReply answer_to(Uplink& up) {
  for (std::vector<pollfd> entries;; entries.clear()) {
    Result<std::optional<FinalReply>> reply = up.progress();
    if (!reply.ok()) throw std::runtime_error(message_of(reply));
    if (*reply) return **std::move(reply);
    up.append_wanted(entries);
    ::poll(entries.data(), entries.size(), up.poll_ms(1000));
  }
}

TEST_F(HostLeaders, say_nothing_of_a_rank_that_left_before_the_server_was_there) {
  const Member mine = member_at(0, 0, 3), gone = member_at(0, 1, 3), back = member_at(0, 1, 3);
  Uplink up(meeting_, {mine.hello, soon()}, false);
  up.take_report({{hello_frame_of(gone)}});
  up.take_report({{}, 1});
  up.take_report({{hello_frame_of(back)}});
  in_threads(2, [&](int i) {
    if (i == 0)
      EXPECT_EQ(answer_to(up).kind, Frame::table);
    else
      EXPECT_OK(join_as(member_at(1, 2, 3)).status());
  });
}

TEST_F(HostLeaders, that_come_late_say_which_ranks_hear_a_failure_from_them) {
  expect_all_hear({{0, 0}, {1, 1}, {1, 1}}, 4, Code::invalid_usage, "rank 1 joined twice");
  const Member mine = member_at(0, 2, 4), other = member_at(0, 3, 4);
  Uplink up(meeting_, {mine.hello, soon()}, false);
  up.take_report({{hello_frame_of(other)}});
  EXPECT_EQ(answer_to(up).kind, Frame::failure);
  const auto begun = Deadline::Clock::now();
  server_->stop_when_told();
  EXPECT_LT(Deadline::Clock::now() - begun, milliseconds(1900));  // it gives late ranks 2000
}

/// It has the name, and cannot accept a connection.
UniqueFd bind_unix(const std::string& name) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  return socket;
}

TEST_F(HostLeaders, give_their_name_up_when_they_can_let_in_no_more_ranks) {
  const std::string name = name_at(member_at(0, 0, 3));
  UniqueFd host = bind_unix(name);
  Relay relay(std::move(host), meeting_.secret, Trust::secret);
  EXPECT_FALSE(listen_unix(name).ok());
  std::vector<pollfd> entries;
  relay.append_wanted(entries);
  ::poll(entries.data(), entries.size(), 1000);
  relay.progress(entries);
  EXPECT_OK(listen_unix(name).status());
}

/// The test is the root server.
class RootByHand : public HostLeaders {
 protected:
  void SetUp() override {
    meeting_.tree = {2, 2};
    meeting_.secret = *Secret::random();
    Result<TcpListener> listener = listen_tcp({4, 0, 0, {127, 0, 0, 1}});
    meeting_.endpoints = {{"", listener->address}};
    listener_ = std::move(listener->socket);
  }
  UniqueFd listener_;
};

TEST_F(RootByHand, hears_all_ranks_of_a_host_over_one_connection) {
  constexpr std::size_t kRanks = 9;
  std::thread root([&] {
    Acceptor acceptor({{listener_.get(), false}}, meeting_.secret, kToRoot, Trust::secret);
    Connection leader = wait_for_authenticated(acceptor);
    std::vector<Hello> hellos(kRanks);
    hellos[leader.from] = receive_hello(leader).hello;
    send(leader, Frame::place, bytes_of(Place{0}));
    FrameReader reader(largest_report);
    for (std::size_t heard = 1; heard < kRanks;) {
      ASSERT_OK(wait_for(leader.socket.get(), POLLIN, soon(), "leader"));
      const auto frame = reader.next(leader.socket.get(), leader.session, "leader");
      ASSERT_OK(frame.status());
      if (!*frame) continue;
      ASSERT_EQ((*frame)->kind, Frame::hello);
      for (Bytes rest = (*frame)->payload; !rest.empty(); rest = rest.subspan(sizeof(HelloFrame))) {
        const Hello hello = read_as<HelloFrame>(rest).hello;
        hellos[hello.rank] = hello;
        ++heard;
      }
    }
    EXPECT_FALSE(has_waiting_connection(listener_.get()));
    send_table(leader, hellos);
  });
  expect_all_join(hosts_of_sizes({kRanks}));
  root.join();
}

TEST_F(RootByHand, hears_of_a_rank_that_leaves_its_leader) {
  const Member leaver = member_at(1, 4, 5);
  std::promise<void> heard;
  std::thread root([&] {
    Acceptor acceptor({{listener_.get(), false}}, meeting_.secret, kToRoot, Trust::secret);
    const Connection leader = wait_for_authenticated(acceptor);
    receive_hello(leader);
    send(leader, Frame::place, bytes_of(Place{0}));
    receive_hello(leader);
    heard.set_value();
    FrameReader reader(largest_report);
    std::optional<ReceivedFrame> frame;
    while (!frame) {
      ASSERT_OK(wait_for(leader.socket.get(), POLLIN, soon(), "leader"));
      auto next = reader.next(leader.socket.get(), leader.session, "leader");
      ASSERT_OK(next.status());
      frame = *std::move(next);
    }
    ASSERT_EQ(frame->kind, Frame::left);
    EXPECT_EQ(read_as<Left>(frame->payload).rank, 4U);
    send(leader, Frame::failure, failure_payload(Status(Code::remote_error, "rank 4 left")));
  });
  std::thread leaves([&] {
    const Connection leader = call({{name_at(leaver), {}}}, 4, kToRelay);
    send(leader, Frame::hello, bytes_of(hello_frame_of(leaver)));
    heard.get_future().wait();
  });
  expect_all_hear({{1, 2}}, 5, Code::remote_error, "rank 4 left");
  leaves.join();
  root.join();
}

TEST_F(RootByHand, that_ends_with_the_leader_of_a_host_is_not_waited_for) {
  auto leader = std::make_unique<FakeLeader>(name_at(member_at(0, 0, 4)), meeting_.secret);
  std::thread ends([&] {
    std::vector<Connection> ranks;
    for (int i = 0; i < 2; ++i) {
      ranks.push_back(wait_for_authenticated(leader->acceptor));
      receive_hello(ranks.back());
    }
    listener_.reset();
    leader.reset();
  });
  expect_all_hear({{0, 1}, {0, 2}}, 4, Code::remote_error, "leads this host (pid ");
  ends.join();
}

TEST_F(RootByHand, hears_how_long_a_rank_tried_to_meet_its_leader) {
  const UniqueFd silent = *listen_unix(name_at(member_at(0, 0, 3)));
  std::thread root([&] {
    Acceptor acceptor({{listener_.get(), false}}, meeting_.secret, kToRoot, Trust::secret);
    const Connection rank = wait_for_authenticated(acceptor);
    EXPECT_GE(receive_hello(rank).waited_ms, 900U);  // it tries for 1000
    send(rank, Frame::failure, failure_payload(Status(Code::aborted, "heard")));
  });
  expect_all_hear({{0, 1}}, 3, Code::aborted, "heard");
  root.join();
}

TEST_F(RootByHand, that_does_not_read_leaves_its_leader_asleep) {
  const Member mine = member_at(0, 0, 3), other = member_at(0, 1, 3);
  std::promise<void> done;
  std::thread root([&] {
    Acceptor acceptor({{listener_.get(), false}}, meeting_.secret, kToRoot, Trust::secret);
    const Connection leader = wait_for_authenticated(acceptor);
    receive_hello(leader);
    send(leader, Frame::place, bytes_of(Place{0}));
    done.get_future().wait();
  });
  Uplink up(meeting_, {mine.hello, soon()}, false);
  const Report many{std::vector<HelloFrame>(20000, hello_frame_of(other))};
  up.take_report(many);
  std::vector<pollfd> entries;
  const auto is_stuck = [&] {
    entries.clear();
    up.append_wanted(entries);
    return ::poll(entries.data(), entries.size(), 20) == 0 && entries.size() == 1 &&
           entries[0].events == (POLLIN | POLLOUT);
  };
  while (!is_stuck()) ASSERT_OK(up.progress().status());
  up.take_report(many);
  EXPECT_EQ(up.poll_ms(1000), 1000);
  done.set_value();
  root.join();
}

TEST_F(RootByHand, that_is_not_there_keeps_a_leader_no_longer_when_a_rank_behind_it_hangs) {
  listener_.reset();
  const Member leader = member_at(0, 0, 3), other = member_at(0, 1, 3);
  Deadline::Clock::time_point ended;
  std::thread leads([&] {
    EXPECT_FALSE(join_as(leader, Deadline::in(milliseconds(300))).ok());
    ended = Deadline::Clock::now();
  });
  const Deadline::Clock::time_point begun = Deadline::Clock::now();
  const Connection hangs = call({{name_at(other), {}}}, 1, kToRelay);
  send(hangs, Frame::hello, bytes_of(hello_frame_of(other)));
  leads.join();
  EXPECT_LT(ended - begun, milliseconds(8000));
}

TEST_F(RootByHand, that_is_not_there_is_said_in_time_by_every_rank_of_a_host) {
  listener_.reset();
  expect_all_hear({{0, 0}, {0, 1}, {0, 2}}, 3, Code::timeout, "in time",
                  Deadline::in(milliseconds(300)));
}

}  // namespace
}  // namespace anyccl::bootstrap
