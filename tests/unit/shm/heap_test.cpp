// The memory that a rank shows in all communicators over the same links: when a part of it is used
// again.

#include "platform/transports/shm/heap.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "platform/transports/shm/control.hpp"
#include "platform/transports/shm/layout.hpp"
#include "platform/transports/shm/pair_memory.hpp"
#include "support/ranks.hpp"
#include "unit/shm/pair_of_ranks.hpp"

namespace anyccl::shm {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;
constexpr std::uint64_t kKey = 7;

Block take(SharedHeap& heap, std::size_t bytes = kBytes) {
  auto block = heap.allocate(bytes);
  EXPECT_TRUE(block.ok()) << block.status().message();
  return block.ok() ? *std::move(block) : Block();
}
bool is_zero(const Block& block) {
  return std::all_of(block.out(), block.out() + block.bytes,
                     [](std::byte b) { return b == std::byte{0}; });
}

struct Heap : testing::Test {
  const std::shared_ptr<SharedHeap> heap = std::make_shared<SharedHeap>();
  std::atomic<std::uint64_t> reads{kKey};  ///< Of a peer.
};

TEST_F(Heap, gives_parts_of_one_volume) {
  const Block first = take(*heap), second = take(*heap);
  EXPECT_EQ(first.volume, second.volume);
  EXPECT_NE(first.in(), second.in());
  EXPECT_GE(second.position, first.position + kBytes);
}

TEST_F(Heap, uses_a_part_again_at_once_if_nobody_reads_it_and_zeroed) {
  Block block = take(*heap);
  const std::size_t position = block.position;
  ASSERT_TRUE(populate(block.volume->out, block.position, kBytes).ok());
  std::fill_n(block.out(), kBytes, std::byte{1});
  block.in()[0] = std::byte{1};
  heap->release(std::move(block), kKey, {});
  const Block again = take(*heap);
  EXPECT_EQ(again.position, position);
  EXPECT_TRUE(is_zero(again));
  EXPECT_EQ(again.in()[0], std::byte{0});
}

TEST_F(Heap, leaves_a_part_alone_until_its_reader_has_left) {
  Block block = take(*heap);
  const std::size_t position = block.position;
  ASSERT_TRUE(populate(block.volume->out, block.position, kBytes).ok());
  block.out()[0] = std::byte{1};
  const std::byte* const seen = block.out();
  heap->release(std::move(block), kKey, {{nullptr, &reads, nullptr}});
  Block other = take(*heap);
  EXPECT_NE(other.position, position);
  EXPECT_EQ(*seen, std::byte{1}) << "it may still be read";
  reads = 0;
  EXPECT_EQ(take(*heap).position, position);
}

TEST_F(Heap, takes_a_reader_that_is_in_another_communicator_for_one_that_has_left) {
  Block block = take(*heap);
  const std::size_t position = block.position;
  heap->release(std::move(block), kKey, {{nullptr, &reads, nullptr}});
  reads = kKey + 2;
  EXPECT_EQ(take(*heap).position, position);
}

TEST_F(Heap, uses_the_parts_of_dead_readers_before_it_takes_another_volume) {
  const pid_t child = ::fork();
  if (child == 0) ::pause(), ::_exit(0);
  const auto process = std::make_shared<link::PeerProcess>();
  process->handle = PrivateFd(UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0))));
  ASSERT_TRUE(process->handle);
  const std::size_t most = SharedHeap::kMost;
  const auto parts = static_cast<std::size_t>(Volume::kBytes / most);
  for (std::size_t i = 0; i < parts; ++i)
    heap->release(take(*heap, most), kKey, {{nullptr, &reads, process}});
  EXPECT_EQ(take(*heap, most).volume->number, 2U) << "the reader lives";
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (std::size_t i = 0; i < parts - 1; ++i) take(*heap, most);  // the rest of the second one
  EXPECT_EQ(take(*heap, most).volume->number, 1U);
}

TEST_F(Heap, joins_parts_that_lie_side_by_side) {
  std::vector<Block> blocks;
  while (blocks.empty() || blocks.back().volume->number == 1)
    blocks.push_back(take(*heap, kBytes * 3));
  blocks.pop_back();
  for (const std::size_t i : {1UL, 3UL, 2UL}) heap->release(std::exchange(blocks[i], {}), kKey, {});
  EXPECT_EQ(take(*heap, kBytes * 9).volume->number, 1U);
}

TEST_F(Heap, takes_another_volume_when_there_is_no_doorbell_left) {
  std::vector<Block> blocks;
  for (std::uint32_t i = 0; i < Volume::kBells; ++i) blocks.push_back(take(*heap, 4096));
  EXPECT_EQ(blocks.back().volume->number, 1U);
  EXPECT_EQ(take(*heap, 4096).volume->number, 2U);
}

// --- what a peer shows ---------------------------------------------------------------------------

/// What comes of a peer that says `shown` of its memory and gives these descriptors with it.
Result<MadeTransport> meet(const ControlMessage& shown, std::array<int, 2> fds) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const auto open = [&](int me) {
    std::vector<PeerSocket> sockets;
    sockets.push_back({Rank{1 - me}, UniqueFd(ends[static_cast<std::size_t>(me)]), true, false});
    const auto context = std::make_shared<link::Context>(Rank{me}, 0);
    return std::pair(context, anyccl::test::open_channels(context, std::move(sockets)));
  };
  auto [context, peers] = open(0);
  auto [their_context, theirs] = open(1);
  EXPECT_OK(send(*theirs[0].channel, shown, fds));
  ControlMessage answer;
  answer.kind = ControlMessage::mapped;
  answer.code = 1;
  EXPECT_OK(send(*theirs[0].channel, answer));
  return make_shm_transport(std::move(peers), {.me = Rank{0},
                                               .context = context,
                                               .ranks = 2,
                                               .banks = 2,
                                               .slots = 16,
                                               .ring_bytes = kBytes,
                                               .deadline = anyccl::test::patience()});
}

struct Shown : testing::Test {
  Shown() {
    const auto made = std::make_shared<SharedHeap>();
    volume = take(*made).volume;
    Layout layout;
    layout.ranks = 2;
    layout.banks = 2;
    layout.slots = 16;
    layout.slot_lines = kLineBytes / sizeof(Line) + 1;
    layout.ring_bytes = kBytes;
    message.bytes = layout.bytes();
    message.volume = 1;
    fds = {volume->out_fd.get(), volume->bells_fd.get()};
  }
  std::shared_ptr<Volume> volume;
  ControlMessage message;
  std::array<int, 2> fds{};
};

TEST_F(Shown, memory_is_used) {
  const auto made = meet(message, fds);
  ASSERT_OK(made.status());
  EXPECT_NE(made->transport, nullptr);
}

TEST_F(Shown, memory_of_an_unknown_volume_is_not_used) {
  const auto made = meet(message, {-1, -1});
  ASSERT_OK(made.status());
  EXPECT_EQ(made->transport, nullptr);
  EXPECT_EQ(made->others.size(), 1U) << "another transport may reach it";
}

TEST_F(Shown, memory_that_does_not_lie_in_its_volume_is_not_used) {
  for (const std::uint64_t position : {Volume::kBytes - message.bytes + 4096, Volume::kBytes,
                                       std::size_t{64}, ~std::size_t{4095}}) {
    message.position = position;
    const auto made = meet(message, fds);
    ASSERT_OK(made.status());
    EXPECT_EQ(made->transport, nullptr) << position;
  }
}

TEST_F(Shown, doorbell_that_does_not_lie_in_its_volume_is_not_used) {
  for (const std::uint32_t bell : {Volume::kBells, ~0U}) {
    message.bell = bell;
    const auto made = meet(message, fds);
    ASSERT_OK(made.status());
    EXPECT_EQ(made->transport, nullptr) << bell;
  }
}

/// Blocks of two heaps have volumes of one number: the peer would take one for the other.
TEST(PairMemory, tells_which_of_two_heaps_is_kept) {
  PairMemory pair;
  const auto first = std::make_shared<SharedHeap>(), second = std::make_shared<SharedHeap>();
  EXPECT_TRUE(pair.keep_first_heap(first));
  EXPECT_FALSE(pair.keep_first_heap(second));
  EXPECT_TRUE(pair.keep_first_heap(first));
  EXPECT_EQ(pair.heap(), first);
}

}  // namespace
}  // namespace anyccl::shm
