// The staging ring gives its memory back when it is idle, and never what a reader still needs.

#include "unit/shm/pair_of_ranks.hpp"

namespace anyccl::shm {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

/// Publishes kBytes bytes of `value` for rank 1, as number 0 of `operation`.
void publish(Transport& t, std::uint64_t operation, std::byte value) {
  const ReaderOf reader{1, 1, 0, 0};
  const Outgoing out{
      .operation = operation, .bytes = kBytes, .total = kBytes, .readers = {&reader, 1}};
  std::byte* const room = t.publications().reserve(out);
  ASSERT_NE(room, nullptr);
  std::fill_n(room, kBytes, value);
  t.publications().publish(out);
}
/// Reads it as rank 1, and says so.
void read(Transport& t, std::uint64_t operation, std::byte value) {
  const Incoming in{.operation = operation, .rank = 0, .bytes = kBytes, .whole = kBytes};
  const std::byte* const at = t.publications().poll(in);
  ASSERT_NE(at, nullptr);
  EXPECT_TRUE(std::all_of(at, at + kBytes, [&](std::byte b) { return b == value; }));
  t.publications().post(operation, 0, 1);
  t.publications().finished(operation, false);
}

TEST(RingMemory, is_given_back_once_readers_have_read_and_nothing_came_since) {
  const auto ranks = test::make_pair_of_ranks();
  int grown = 0;
  ranks[0]->when_grown([&] { ++grown; });
  const std::size_t fresh = ranks[0]->memory_bytes();
  EXPECT_EQ(ranks[0]->give_back(), GivenBack::all) << "nothing to give back";
  for (std::uint64_t operation = 1; operation <= 5; ++operation) {
    const auto value = static_cast<std::byte>(operation);
    publish(*ranks[0], operation, value);
    EXPECT_EQ(grown, static_cast<int>(operation));
    EXPECT_EQ(ranks[0]->give_back(), GivenBack::in_use);
    EXPECT_EQ(ranks[0]->give_back(), GivenBack::unread);
    EXPECT_GE(ranks[0]->memory_bytes(), fresh + kBytes);
    read(*ranks[1], operation, value);
    EXPECT_EQ(ranks[0]->give_back(), GivenBack::all);
    EXPECT_EQ(ranks[0]->memory_bytes(), fresh);
  }
}

TEST(RingMemory, of_small_publications_does_not_exist) {
  const auto ranks = test::make_pair_of_ranks();
  ranks[0]->when_grown([] { ADD_FAILURE() << "it has grown"; });
  const ReaderOf reader{1, 1, 0, 0};
  const Outgoing out{.operation = 1, .bytes = 8, .total = 8, .readers = {&reader, 1}};
  ASSERT_NE(ranks[0]->publications().reserve(out), nullptr);
  ranks[0]->publications().publish(out);
  EXPECT_EQ(ranks[0]->give_back(), GivenBack::all);
}

}  // namespace
}  // namespace anyccl::shm
