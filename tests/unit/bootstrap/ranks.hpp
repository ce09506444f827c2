#pragma once
// What the bootstrap's tests share: ranks as threads that join and connect.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "platform/bootstrap/mesh/connect.hpp"
#include "platform/bootstrap/rendezvous/join.hpp"
#include "platform/bootstrap/socket/wire.hpp"

#define ASSERT_OK(...)                                          \
  do {                                                          \
    const ::anyccl::Status assert_status = (__VA_ARGS__);       \
    ASSERT_TRUE(assert_status.ok()) << assert_status.message(); \
  } while (false)

#define EXPECT_OK(...)                                          \
  do {                                                          \
    const ::anyccl::Status expect_status = (__VA_ARGS__);       \
    EXPECT_TRUE(expect_status.ok()) << expect_status.message(); \
  } while (false)

namespace anyccl::bootstrap::test {

inline Deadline soon() {
  return Deadline::in(std::chrono::seconds(20));
}

/// Waits until `into` is full. Errors: those of Inbox::fill() and wait_for().
inline Status recv_all(int fd, std::span<std::byte> into, Deadline deadline,
                       std::string_view peer) {
  Inbox inbox;
  inbox.expect(into.size());
  for (;;) {
    ANYCCL_CHECK(inbox.fill(fd, peer));
    if (inbox.full()) break;
    ANYCCL_CHECK(wait_for(fd, POLLIN, deadline, peer));
  }
  std::ranges::copy(inbox.bytes(), into.begin());
  return {};
}

/// Many ranks in one process need many descriptors; the usual limit is 1024.
inline const bool kDescriptorsRaised = [] {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}();

inline HostIdentity this_host() {
  return {"one boot", 7, ""};
}

/// The message of an error; empty for success.
template <typename T>
std::string message_of(const Result<T>& result) {
  return std::string(result.status().message());
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Runs body(0) to body(n - 1) at the same time, each in a thread, and waits for all.
inline void in_threads(int n, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) threads.emplace_back(body, r);
  for (std::thread& t : threads) t.join();
}

/// One rank's listeners and its hello.
struct Member {
  Listeners listeners;
  Hello hello;
};

inline Member make_member(int rank, int size, std::string_view settings = "",
                          const HostIdentity& host = this_host()) {
  Result<Listeners> listeners = Listeners::open("");
  if (!listeners.ok()) throw std::runtime_error(message_of(listeners));
  const Result<Hello> hello = make_hello(Rank{rank}, size, host, settings, *listeners);
  if (!hello.ok()) throw std::runtime_error(message_of(hello));
  return {*std::move(listeners), *hello};
}

/// A group whose ranks joined through `id`, and what connect_all() gave each of them.
struct Connected {
  Group group;
  std::vector<PeerSocket> peers;
};

inline Result<Connected> join_and_connect(const UniqueId& id, const Member& member, bool force_tcp,
                                          Deadline deadline) {
  Result<Group> group = join(id, member.hello, deadline);
  if (!group.ok()) return group.status();
  Result<std::vector<PeerSocket>> peers =
      connect_all(member.listeners, group->members, Rank{static_cast<int>(member.hello.rank)},
                  group->secret, force_tcp, deadline);
  if (!peers.ok()) return peers.status();
  return Connected{*std::move(group), *std::move(peers)};
}

/// Sends this rank's number to every peer and expects theirs: each socket leads to the rank it
/// says.
inline void expect_peers_answer(int rank, const std::vector<PeerSocket>& peers) {
  for (const PeerSocket& peer : peers)
    EXPECT_TRUE(send_all(peer.fd.get(), bytes_of(rank), soon(), "peer").ok());
  for (const PeerSocket& peer : peers) {
    int number = -1;
    EXPECT_TRUE(
        recv_all(peer.fd.get(), std::as_writable_bytes(std::span(&number, 1)), soon(), "peer")
            .ok());
    EXPECT_EQ(number, index(peer.rank));
  }
}

}  // namespace anyccl::bootstrap::test
