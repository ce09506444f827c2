// What a peer that keeps to no rules can do through its memory.

#include <sys/mman.h>

#include "hostile_peer.hpp"

namespace anyccl::shm {
namespace {

using test::HostilePeer;
constexpr std::size_t kBytes = 32768;

Incoming wanted(std::uint64_t operation) {
  return {.operation = operation, .rank = 1, .bytes = kBytes, .whole = kBytes};
}

bool is_mapped(const std::byte* page) {
  const auto at = reinterpret_cast<std::uintptr_t>(page) / 4096 * 4096;
  return ::msync(reinterpret_cast<void*>(at), 4096, MS_ASYNC) == 0;
}

TEST(HostilePeer, cannot_unmap_a_window_that_is_being_read) {
  HostilePeer peer;
  auto memory = create_shared(kBytes, false, "test");
  ASSERT_TRUE(memory.ok());
  memory->mapping.data()[kBytes - 1] = std::byte{42};
  ControlMessage message;
  message.kind = ControlMessage::window;
  message.number = 7;
  message.bytes = kBytes;
  peer.say(message, memory->fd.get());
  peer.publish(1, 0, {Descriptor::window, 7, 0, kBytes, kBytes});
  const std::byte* const read = peer.victim().publications().poll(wanted(1));
  ASSERT_NE(read, nullptr) << peer.victim().check().message();
  message.kind = ControlMessage::no_window;
  peer.say(message);
  EXPECT_TRUE(peer.victim().check().ok());
  ASSERT_TRUE(is_mapped(read));
  EXPECT_EQ(read[kBytes - 1], std::byte{42});
  peer.victim().publications().finished(1, false);
  EXPECT_FALSE(is_mapped(read)) << "nobody reads it any more";
}

TEST(HostilePeer, cannot_have_anything_read_beyond_its_memory) {
  constexpr std::uint64_t kRing = HostilePeer::kLayout.ring_bytes;
  const Descriptor wrong[] = {{Descriptor::staged, 0, kRing - kBytes + 1, kBytes, kBytes},
                              {Descriptor::staged, 0, ~std::uint64_t{0}, kBytes, kBytes},
                              {Descriptor::staged, 0, 0, kBytes + 1, kBytes},
                              {Descriptor::memory, 0, 4096, kBytes, kBytes},
                              {99, 0, kRing, kBytes, kBytes}};
  for (const Descriptor& d : wrong) {
    HostilePeer peer;
    peer.publish(1, 0, d);
    EXPECT_EQ(peer.victim().publications().poll(wanted(1)), nullptr);
    EXPECT_FALSE(peer.victim().check().ok());
  }
}

TEST(HostilePeer, aborts_with_an_error_and_its_text_without_control_characters) {
  for (const int code : {-1, 0, static_cast<int>(Code::in_progress), 99}) {
    HostilePeer peer;
    ControlMessage message;
    message.kind = ControlMessage::abort;
    message.code = code;
    std::strcpy(message.text, "gone\n\x1b[2J");
    peer.say(message);
    const Status problem = peer.victim().check();
    EXPECT_EQ(problem.code(), Code::remote_error);
    EXPECT_EQ(problem.message(), "gone??[2J");
  }
}

TEST(HostilePeer, cannot_have_a_window_mapped_that_is_smaller_than_it_says) {
  HostilePeer peer;
  auto memory = create_shared(4096, false, "test");
  ASSERT_TRUE(memory.ok());
  ControlMessage message;
  message.kind = ControlMessage::window;
  message.bytes = kBytes;
  peer.say(message, memory->fd.get());
  EXPECT_EQ(peer.victim().check().code(), Code::remote_error);
}

}  // namespace
}  // namespace anyccl::shm
