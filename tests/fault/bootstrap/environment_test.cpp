// Ranks that a launcher starts as processes meet through the environment.

#include "platform/bootstrap/rendezvous/environment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "launch/rendezvous.hpp"
#include "unauthenticated.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;
using std::chrono::milliseconds;

constexpr uid_t kNobody = 65534;

/// Runs body(0) to body(n - 1) in forked processes at the same time; what each of them returned.
std::vector<std::string> in_processes(int n, const std::function<std::string(int)>& body) {
  struct Child {
    pid_t pid;
    UniqueFd pipe;
  };
  std::vector<Child> children;
  for (int r = 0; r < n; ++r) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    UniqueFd reader(ends[0]), writer(ends[1]);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const std::string result = body(r);
      const ssize_t written = ::write(writer.get(), result.data(), result.size());
      ::_exit(written == static_cast<ssize_t>(result.size()) ? 0 : 1);
    }
    children.push_back({pid, std::move(reader)});
  }
  std::vector<std::string> results;
  for (Child& child : children) {
    std::string result(4096, '\0');
    std::size_t size = 0;
    for (ssize_t got = 1; got > 0; size += static_cast<std::size_t>(got))
      got = ::read(child.pipe.get(), result.data() + size, result.size() - size);
    int status = -1;
    ::waitpid(child.pid, &status, 0);
    result.resize(size);
    results.push_back(status == 0 ? result : "the process failed");
  }
  return results;
}

/// Kept to the end of the process.
int free_port() {
  static std::vector<cli::PortPair> kept;
  kept.push_back(*cli::free_port_pair());
  return kept.back().first;
}

Config config_of(int rank, int size, int port, std::string_view secret) {
  Config config;
  config.rank = rank;
  config.world_size = size;
  config.port = port;
  config.master_addr = "127.0.0.1";
  config.secret = secret;
  return config;
}

/// Joins and connects as a launched process does: empty, or what went wrong.
std::string start(const Config& config, std::string_view settings = "",
                  Deadline deadline = soon()) {
  const Result<LaunchInfo> info = read_launch_info(config);
  if (!info.ok()) return message_of(info);
  const Member member = make_member(index(info->rank), info->size, settings);
  const Result<Group> group = join_environment(config, member.hello, deadline);
  if (!group.ok()) return message_of(group);
  const Result<std::vector<PeerSocket>> peers =
      connect_all(member.listeners, group->members, info->rank, group->secret, false, soon());
  if (!peers.ok()) return message_of(peers);
  for (const PeerSocket& peer : *peers)
    if (peer.same_process || !peer.local)
      return "wrong facts about rank " + std::to_string(index(peer.rank));
  return "";
}

std::string some_secret() {
  return Secret::random()->hex();
}

TEST(Environment, processes_meet_with_a_secret) {
  const std::string secret = some_secret();
  const int port = free_port();
  const auto results =
      in_processes(4, [&](int rank) { return start(config_of(rank, 4, port, secret)); });
  EXPECT_EQ(results, std::vector<std::string>(4));
}

TEST(Environment, processes_of_one_user_and_host_meet_without_a_secret) {
  const int port = free_port();
  const auto results =
      in_processes(4, [&](int rank) { return start(config_of(rank, 4, port, "")); });
  EXPECT_EQ(results, std::vector<std::string>(4));
}

TEST(Environment, ranks_meet_one_port_above_the_launchers) {
  const int port = free_port();
  const std::string secret = some_secret();
  const auto results = in_processes(2, [&](int rank) {
    Config config = config_of(rank, 2, rank == 0 ? 0 : port, secret);
    config.master_port = port - 1;
    return start(config);
  });
  EXPECT_EQ(results, std::vector<std::string>(2));
}

TEST(Environment, ranks_meet_at_a_name) {
  const int port = free_port();
  const std::string secret = some_secret();
  const auto results = in_processes(2, [&](int rank) {
    Config config = config_of(rank, 2, port, secret);
    config.master_addr = "localhost";
    return start(config);
  });
  EXPECT_EQ(results, std::vector<std::string>(2));
}

TEST(Environment, groups_can_follow_each_other_at_one_port) {
  const std::string secret = some_secret();
  for (const std::string& used : {secret, std::string()}) {
    const int port = free_port();
    const auto results = in_processes(3, [&](int rank) {
      for (int round = 0; round < 20; ++round)
        if (std::string problem = start(config_of(rank, 3, port, used)); !problem.empty())
          return problem;
      return std::string();
    });
    EXPECT_EQ(results, std::vector<std::string>(3));
  }
}

TEST(Environment, a_group_of_one_needs_no_address) {
  Config config;
  config.rank = 0;
  config.world_size = 1;
  EXPECT_EQ(start(config), "");
}

TEST(Environment, settings_that_differ_are_named) {
  const int port = free_port();
  const auto results = in_processes(2, [&](int rank) {
    return start(config_of(rank, 2, port, ""), rank == 0 ? "ANYCCL_ALGO=ring" : "ANYCCL_ALGO=tree");
  });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_TRUE(contains(results[0], "ANYCCL_ALGO must be the same on every rank")) << results[0];
}

TEST(Environment, a_missing_rank_is_named) {
  const Config config = config_of(0, 2, free_port(), some_secret());
  const std::string problem = start(config, "", Deadline::in(milliseconds(2000)));
  EXPECT_TRUE(contains(problem, "1 of 2 ranks joined")) << problem;
  EXPECT_TRUE(contains(problem, "missing: 1")) << problem;
}

TEST(Environment, a_missing_rank_may_lack_a_secret_that_nobody_has) {
  const Config config = config_of(0, 2, free_port(), "");
  const std::string problem = start(config, "", Deadline::in(milliseconds(1000)));
  EXPECT_TRUE(contains(problem, "missing: 1; without ANYCCL_SECRET only processes of this user"))
      << problem;
}

TEST(Environment, a_rank_without_rank_0_is_told_where_it_looked) {
  const int port = free_port();
  for (const std::string& secret : {some_secret(), std::string()}) {
    const std::string problem =
        start(config_of(1, 2, port, secret), "", Deadline::in(milliseconds(100)));
    EXPECT_TRUE(contains(problem, std::to_string(port))) << problem;
    EXPECT_TRUE(contains(problem, "is rank 0 running")) << problem;
  }
}

TEST(Environment, another_secret_is_told_on_both_sides) {
  const int port = free_port();
  const auto results = in_processes(2, [&](int rank) {
    return start(config_of(rank, 2, port, some_secret()), "", Deadline::in(milliseconds(2000)));
  });
  EXPECT_TRUE(contains(results[1], "another secret")) << results[1];
  EXPECT_TRUE(contains(results[0], "missing: 1; a process at 127.0.0.1:")) << results[0];
  EXPECT_TRUE(contains(results[0], "another secret")) << results[0];
}

TEST(Environment, a_port_in_use_is_named) {
  const Result<TcpListener> taken = listen_tcp({4, 0, 0, {127, 0, 0, 1}});
  ASSERT_OK(taken.status());
  const std::string problem = start(config_of(0, 2, taken->address.port, some_secret()));
  EXPECT_TRUE(contains(problem, to_string(taken->address) + " is in use")) << problem;
}

TEST(Environment, two_ranks_0_are_both_told) {
  const int ports[] = {free_port(), free_port()};
  const std::string secrets[] = {"", some_secret()};
  const auto results = in_processes(
      4, [&](int i) { return start(config_of(0, 3, ports[i / 2], secrets[i / 2]), "", soon()); });
  for (const std::string& result : results)
    EXPECT_TRUE(contains(result, "rank 0 joined twice: from ")) << result;
}

TEST(Environment, missing_variables_are_named_with_what_sets_them) {
  Config config = config_of(1, 2, 0, "");
  config.rank.reset();
  EXPECT_TRUE(contains(start(config), "RANK is not set")) << start(config);
  EXPECT_TRUE(contains(start(config), "`anyccl run`")) << start(config);
  config = config_of(1, 2, 0, "");
  config.world_size.reset();
  EXPECT_TRUE(contains(start(config), "WORLD_SIZE is not set")) << start(config);
  config = config_of(1, 2, 0, "");
  EXPECT_TRUE(contains(start(config), "MASTER_PORT (or ANYCCL_PORT) is not set")) << start(config);
  config.master_addr.clear();
  EXPECT_TRUE(contains(start(config), "MASTER_ADDR is not set")) << start(config);
  config = config_of(2, 2, 0, "");
  EXPECT_TRUE(contains(start(config), "RANK=2")) << start(config);
}

TEST(Environment, another_host_without_a_secret_is_refused_at_once) {
  Config config = config_of(1, 2, 4000, "");
  config.master_addr = "203.0.113.1";
  const std::string problem = start(config, "", Deadline::never());
  EXPECT_TRUE(contains(problem, "ANYCCL_SECRET") && contains(problem, "`anyccl run`")) << problem;
}

class AnotherUser : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  }
  Endpoint endpoint_{"anyccl.test." + some_secret(), {}};
};

TEST_F(AnotherUser, is_not_let_in_without_a_secret) {
  const Result<UniqueFd> listener = listen_unix(endpoint_.unix_name);
  ASSERT_OK(listener.status());
  std::vector<std::string> results;
  std::thread other([&] {
    results = in_processes(1, [&](int) -> std::string {
      if (::setresuid(kNobody, kNobody, kNobody) != 0) return "setresuid";
      const UniqueFd socket = connect_to(endpoint_);
      std::byte unexpected{};
      const Status s = recv_all(socket.get(), {&unexpected, 1}, soon(), "rank 0");
      return s.code() == Code::remote_error ? "dropped" : std::string(s.message());
    });
  });
  Acceptor acceptor({{listener->get(), true}}, Secret(), kToRoot, Trust::same_user);
  ASSERT_OK(wait_for(listener->get(), POLLIN, soon(), "the other user"));
  const pollfd ready{listener->get(), POLLIN, POLLIN};
  EXPECT_OK(acceptor.progress({&ready, 1}));
  EXPECT_EQ(acceptor.wanted(), 1U);
  other.join();
  EXPECT_EQ(results, std::vector<std::string>{"dropped"});
}

TEST_F(AnotherUser, is_not_joined_without_a_secret) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]), writer(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool other = ::setresuid(kNobody, kNobody, kNobody) == 0;
    const Result<UniqueFd> listener = listen_unix(endpoint_.unix_name);
    const char ready = other && listener.ok() ? 'y' : 'n';
    const bool told = ::write(writer.get(), &ready, 1) == 1;
    if (told) static_cast<void>(wait_for(listener->get(), POLLIN, soon(), "parent").ok());
    ::pause();
  }
  char ready = 'n';
  ASSERT_EQ(::read(reader.get(), &ready, 1), 1);
  ASSERT_EQ(ready, 'y');
  const Result<Connection> call =
      dial_to_end(Dial(Secret(), {{endpoint_}, 1, kToRoot, Trust::same_user}));
  EXPECT_EQ(call.status().code(), Code::invalid_argument);
  EXPECT_TRUE(contains(message_of(call), "belongs to user 65534")) << message_of(call);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace anyccl::bootstrap
