// Thousands of connections of strangers come to the ports of a running job: its results stay right,
// and nothing of them is left.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>

#include "base/unique_fd.hpp"
#include "support/effort.hpp"
#include "support/ranks.hpp"
#include "support/transports.hpp"

namespace anyccl::test {
namespace {

/// The number behind an option of a socket; absent: the descriptor is none.
std::optional<int> option_of(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(fd, SOL_SOCKET, option, &value, &size) != 0) return std::nullopt;
  return value;
}

std::vector<int> open_sockets() {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    if (const int fd = std::stoi(entry.path().filename()); option_of(fd, SO_TYPE))
      found.push_back(fd);
  return found;
}

/// Where this process listens for IPv4 connections.
std::vector<sockaddr_in> listeners() {
  std::vector<sockaddr_in> found;
  for (const int fd : open_sockets()) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (option_of(fd, SO_ACCEPTCONN).value_or(0) != 0 &&
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        address.sin_family == AF_INET)
      found.push_back(address);
  }
  return found;
}

/// One that says nothing, something else, or half of the right thing.
UniqueFd stranger(const sockaddr_in& address, std::mt19937& random) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  static_cast<void>(
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
  std::string said;
  switch (random() % 4) {
    case 0:
      return socket;
    case 1:
      said = "GET / HTTP/1.1\r\nHost: node7\r\n\r\n";
      break;
    case 2:
      said = "anyccl?\n" + std::string(random() % 32, '\7');
      break;
    default:
      said.resize(random() % 200);
      for (char& c : said) c = static_cast<char>(random());
  }
  // The connection of a loopback interface is there at once; what it does not take makes no
  // difference.
  static_cast<void>(::send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL));
  return socket;
}

/// As many as `count`; of the last hundred many are open at a time.
void besiege(int count) {
  std::mt19937 random(std::random_device{}());
  const std::vector<sockaddr_in> where = listeners();
  ASSERT_FALSE(where.empty());
  std::deque<UniqueFd> open;
  for (int i = 0; i < count; ++i) {
    UniqueFd socket = stranger(where[random() % where.size()], random);
    if (random() % 2 == 0) open.push_back(std::move(socket));
    if (open.size() > 100) open.pop_front();
  }
}

/// Returns when a listener has dropped one more stranger, and so has accepted all who came before.
void await_listener(const sockaddr_in& address) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  const std::string said = "GET / HTTP/1.1\r\nHost: the last one\r\n\r\n" + std::string(1000, '\n');
  static_cast<void>(::send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL));
  const timeval limit{.tv_sec = 60, .tv_usec = 0};
  ASSERT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  char answer[256];
  errno = 0;
  while (::recv(socket.get(), answer, sizeof answer, 0) > 0) {
  }
  EXPECT_NE(errno, EAGAIN) << "the last stranger was not dropped";
}

TEST(Strangers, do_not_disturb_a_job_and_leave_nothing_behind) {
  const Environment over_tcp({{"ANYCCL_TRANSPORT", "tcp"}, {"ANYCCL_CONNECT_ALL", "0"}});
  std::atomic<bool> over{false};
  run_ranks(2, [&](Communicator& comm) {
    std::vector<float> x(1000), y(x.size());
    const auto sum = [&](float last) {
      x.back() = last;
      ASSERT_OK(wait(comm.all_reduce(view(x), view(y), ReduceOp::sum)));
      ASSERT_EQ(y.back(), 2 * last);
    };
    sum(1);
    const bool is_first = comm.rank() == Rank{0};
    const std::size_t before = open_sockets().size();
    ASSERT_OK(wait(comm.barrier()));
    std::thread strangers([&] {
      if (is_first) besiege(effort(1000, 10000, 10000));
      if (is_first) over.store(true);  // read below
    });
    // Both see the same sum, so they stop together.
    for (float turn = 0; y[0] < 1; ++turn) {
      x[0] = is_first && over.load() ? 1 : 0;
      sum(static_cast<float>(static_cast<int>(turn) % 1000));
    }
    strangers.join();
    if (is_first) {
      for (const sockaddr_in& address : listeners()) await_listener(address);
      // The connecting thread drops those that are gone when it comes to them.
      for (const Deadline limit = patience(); open_sockets().size() > before && !limit.passed();)
        std::this_thread::yield();
      EXPECT_LE(open_sockets().size(), before);
    }
    ASSERT_OK(wait(comm.barrier()));
  });
}

}  // namespace
}  // namespace anyccl::test
