// The least that two ranks on two hosts must do: each sends BYTES to the other over one TCP connection and polls until as many have
// come. No library.
//
//   exchange BYTES ROUNDS PORT            waits for a call
//   exchange BYTES ROUNDS PORT ADDRESS    calls (IPv4), and prints the median time of a round in microseconds

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void need(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::_Exit(1);
}

int answer(const sockaddr_in& address) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0), on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  need(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "bind");
  need(::listen(listener, 1) == 0, "listen");
  return ::accept(listener, nullptr, nullptr);
}

/// The other side may not be there yet, and nothing tells when it is.
int call(const sockaddr_in& address) {
  for (const auto begin = Clock::now();;
       std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    need(Clock::now() - begin < std::chrono::seconds(10), "connect");
    ::close(fd);
  }
}

void exchange(int fd, const std::vector<char>& out, std::vector<char>& in) {
  need(::send(fd, out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()), "send");
  for (std::size_t got = 0; got < in.size();) {
    const ssize_t n = ::recv(fd, in.data() + got, in.size() - got, MSG_DONTWAIT);
    need(n > 0 || (n < 0 && errno == EAGAIN), "recv");
    if (n > 0) got += static_cast<std::size_t>(n);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: exchange BYTES ROUNDS PORT [ADDRESS]\n");
    return 2;
  }
  const auto bytes = static_cast<std::size_t>(std::atol(argv[1]));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[3])));
  if (argc == 5) need(::inet_pton(AF_INET, argv[4], &address.sin_addr) == 1, argv[4]);
  const int fd = argc == 5 ? call(address) : answer(address), on = 1;
  need(fd >= 0, "accept");
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const std::vector<char> out(bytes);
  std::vector<char> in(bytes);
  std::vector<double> times;
  for (int i = std::atoi(argv[2]); i > 0; --i) {
    const auto begin = Clock::now();
    exchange(fd, out, in);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  if (argc == 5) std::printf("%.3f\n", times[times.size() / 2]);
  return 0;
}
