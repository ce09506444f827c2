// The frames that one end of a link writes to its socket.

#include "platform/link/outbox.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace anyccl::link {
namespace {

/// Else the peer would miss a number, and take the next frame for one behind a lost one.
TEST(Outbox, gives_no_number_to_a_frame_that_it_cannot_send) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const UniqueFd ours(ends[0]), theirs(ends[1]);
  Outbox outbox(-1);
  outbox.set_up(true, nullptr);
  FrameHeader header;
  outbox.send(header, nullptr);
  const int none = -1;  // cannot be duplicated, as if no descriptor were left
  EXPECT_FALSE(outbox.send(header, nullptr, {&none, 1}));
  outbox.send(header, nullptr);
  outbox.connect(ours.get());
  EXPECT_TRUE(outbox.flush());
  for (std::uint64_t number = 0; number < 2; ++number) {
    SealedHeader sealed;
    ASSERT_EQ(::read(theirs.get(), &sealed, sizeof sealed), ssize_t{sizeof sealed});
    EXPECT_EQ(problem_of(sealed, number), nullptr) << number;
  }
}

}  // namespace
}  // namespace anyccl::link
