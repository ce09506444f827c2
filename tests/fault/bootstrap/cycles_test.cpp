// Groups come and go without leaving anything behind.

#include <gtest/gtest.h>

#include "support/usage.hpp"
#include "unauthenticated.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;
using namespace anyccl::test;

/// Forms a group, or, every third time, stops waiting for one whose ranks do not all come.
void run_cycle(int cycle) {
  const Result<Rendezvous> rendezvous = make_rendezvous("");
  ASSERT_OK(rendezvous.status());
  const bool fails = cycle % 3 == 2;
  const UniqueFd silent = connect_to({"", rendezvous->id.addresses()[0]});
  in_threads(fails ? 1 : 3, [&](int rank) {
    const Deadline deadline = fails ? Deadline::in(std::chrono::milliseconds(10)) : soon();
    const Member member = make_member(rank, 3);
    EXPECT_EQ(join_and_connect(rendezvous->id, member, cycle % 2 == 0, deadline).ok(), !fails);
  });
}

TEST(Cycles, leave_no_descriptor_and_no_thread) {
  run_cycle(0);
  const std::ptrdiff_t threads_before = threads(), descriptors_before = descriptors();
  for (int cycle = 1; cycle <= 200; ++cycle) run_cycle(cycle);
  EXPECT_EQ(threads(threads_before), threads_before);
  EXPECT_LE(descriptors(descriptors_before), descriptors_before);
}

/// What a process holds beside what it held when this was made.
class Held {
 public:
  std::ptrdiff_t threads(std::ptrdiff_t wanted) const {
    return anyccl::test::threads(threads_ + wanted) - threads_;
  }
  std::ptrdiff_t descriptors(std::ptrdiff_t wanted) const {
    return anyccl::test::descriptors(descriptors_ + wanted) - descriptors_;
  }

 private:
  std::ptrdiff_t threads_ = anyccl::test::threads();
  std::ptrdiff_t descriptors_ = anyccl::test::descriptors();
};

void form_pair(const UniqueId& id) {
  in_threads(2, [&](int rank) {
    const Result<Group> group = join(id, make_member(rank, 2).hello, soon());
    ASSERT_OK(group.status());
    EXPECT_EQ(group->members.size(), 2U);
  });
}

std::vector<UniqueId> several(UniqueIds& ids, int count) {
  std::vector<UniqueId> made;
  for (int i = 0; i < count; ++i) {
    const Result<UniqueId> id = ids.make("", {});
    if (!id.ok()) throw std::runtime_error(message_of(id));
    made.push_back(*id);
  }
  return made;
}

TEST(UniqueIdsOfAProcess, share_listeners_and_a_thread) {
  run_cycle(0);
  const Held held;
  UniqueIds ids;
  const std::vector<UniqueId> made = several(ids, 20);
  EXPECT_EQ(held.threads(1), 1);
  EXPECT_LE(held.descriptors(kMostListeners + 3), std::ptrdiff_t{kMostListeners + 3});
  for (const std::size_t i : {7U, 19U, 0U}) {  // in any order, beside unused ones
    form_pair(made[i]);
    ids.drop(made[i], false);
  }
  for (const UniqueId& id : made) ids.drop(id, false);
  EXPECT_EQ(held.threads(0), 0);
  EXPECT_LE(held.descriptors(0), 0);
}

TEST(UniqueIdsOfAProcess, serve_groups_that_meet_at_once) {
  UniqueIds ids;
  const std::vector<UniqueId> made = several(ids, 8);
  in_threads(16, [&](int i) {
    const UniqueId& id = made[static_cast<std::size_t>(i) / 2];
    const Result<Group> group = join(id, make_member(i % 2, 2).hello, soon());
    EXPECT_OK(group.status());
    ids.drop(id, false);
  });
}

TEST(UniqueIdsOfAProcess, that_are_dropped_tell_those_that_wait) {
  UniqueIds ids;
  const Result<UniqueId> dropped = ids.make("", {}), other = ids.make("", {});
  ASSERT_OK(dropped.status());
  ASSERT_OK(other.status());
  Dial::Target root{endpoints_of(*dropped), 0, kToRoot};
  root.meeting = dropped->meeting;
  const Result<Connection> waiting = dial_to_end(Dial(Secret(dropped->secret), std::move(root)));
  ASSERT_OK(waiting.status());
  const HelloFrame hello = hello_frame(make_member(0, 2).hello, soon(), {});
  const Result<FrameHeader> header = seal(waiting->session, Frame::hello, bytes_of(hello));
  const int fd = waiting->socket.get();
  ASSERT_OK(send_all(fd, bytes_of(*header), soon(), "root"));
  ASSERT_OK(send_all(fd, bytes_of(hello), soon(), "root"));
  ids.drop(*dropped, false);
  FrameHeader answer;
  ASSERT_OK(recv_all(fd, std::as_writable_bytes(std::span(&answer, 1)), soon(), "root"));
  EXPECT_EQ(static_cast<Frame>(answer.kind), Frame::failure);
  form_pair(*other);
}

TEST(UniqueIdsOfAProcess, whose_groups_formed_elsewhere_have_no_thread_and_do_not_listen) {
  run_cycle(0);
  const Held held;
  UniqueIds ids;
  const Result<UniqueId> id = ids.make("", {});
  ASSERT_OK(id.status());
  form_pair(*id);  // nobody says that it is not needed any more
  EXPECT_EQ(held.threads(0), 0);
  EXPECT_LE(held.descriptors(3), 3);  // what the server's end takes along
}

}  // namespace
}  // namespace anyccl::bootstrap
