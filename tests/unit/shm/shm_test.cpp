// Memory that is shown to peers, and when a publisher may use it again.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "base/error.hpp"
#include "platform/transports/shm/arena.hpp"
#include "platform/transports/shm/cma.hpp"
#include "platform/transports/shm/memory.hpp"
#include "platform/transports/shm/slot_tracker.hpp"

namespace anyccl::shm {
namespace {

TEST(Memory, of_the_owner_cannot_be_mapped_writable_by_a_peer) {
  auto memory = create_shared(8192, false, "test");
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  EXPECT_FALSE(map_peer(memory->fd.get(), 8192, Access::write, "test").ok());
  const auto peer = map_peer(memory->fd.get(), 8192, Access::read, "test");
  ASSERT_TRUE(peer.ok()) << peer.status().message();
  memory->mapping.data()[17] = std::byte{42};
  EXPECT_EQ(peer->data()[17], std::byte{42});
}

TEST(Memory, for_the_doorbell_can) {
  auto memory = create_shared(4096, true, "test");
  ASSERT_TRUE(memory.ok());
  EXPECT_TRUE(map_peer(memory->fd.get(), 4096, Access::write, "test").ok());
}

TEST(Memory, never_changes_its_size) {
  auto memory = create_shared(8192, false, "test");
  ASSERT_TRUE(memory.ok());
  EXPECT_NE(::ftruncate(memory->fd.get(), 4096), 0);
  EXPECT_NE(::ftruncate(memory->fd.get(), 16384), 0);
}

TEST(Memory, that_a_peer_could_shrink_is_refused) {
  const UniqueFd fd(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), 4096), 0);
  const auto mapped = map_peer(fd.get(), 4096, Access::read, "test");
  ASSERT_FALSE(mapped.ok());
  EXPECT_NE(mapped.status().message().find("not sealed"), std::string::npos);
}

TEST(Memory, smaller_than_promised_is_refused) {
  auto memory = create_shared(4096, false, "test");
  ASSERT_TRUE(memory.ok());
  const auto mapped = map_peer(memory->fd.get(), 8192, Access::read, "test");
  ASSERT_FALSE(mapped.ok());
  EXPECT_NE(mapped.status().message().find("4096 bytes instead of 8192"), std::string::npos)
      << mapped.status().message();
}

std::size_t bytes_in_memory(const UniqueFd& fd) {
  struct stat file {};
  EXPECT_EQ(::fstat(fd.get(), &file), 0);
  return static_cast<std::size_t>(file.st_blocks) * 512;
}

TEST(Memory, that_is_given_back_is_used_again_by_both_sides) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  auto memory = create_returnable(kBytes, "test");
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  const auto peer = map_peer(memory->fd.get(), kBytes, Access::read, "test");
  ASSERT_TRUE(peer.ok()) << peer.status().message();
  for (const std::byte round : {std::byte{1}, std::byte{2}, std::byte{3}}) {
    ASSERT_TRUE(populate(*memory, 0, kBytes).ok());
    EXPECT_GE(bytes_in_memory(memory->fd), kBytes);
    memory->mapping.data()[0] = memory->mapping.data()[kBytes - 1] = round;
    EXPECT_EQ(peer->data()[kBytes - 1], round);
    ASSERT_TRUE(give_back(*memory, kBytes / 2, kBytes / 2));
    EXPECT_LE(bytes_in_memory(memory->fd), kBytes / 2);
    EXPECT_EQ(peer->data()[0], round) << "what was kept";
  }
}

TEST(Memory, that_is_given_back_cannot_be_written_by_a_peer_or_change_its_size) {
  auto memory = create_returnable(8192, "test");
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  EXPECT_FALSE(map_peer(memory->fd.get(), 8192, Access::write, "test").ok());
  const auto peer = map_peer(memory->fd.get(), 8192, Access::read, "test");
  ASSERT_TRUE(peer.ok()) << peer.status().message();
  EXPECT_NE(::mprotect(peer->data(), 8192, PROT_READ | PROT_WRITE), 0);
  EXPECT_NE(::madvise(peer->data(), 8192, MADV_REMOVE), 0);
  EXPECT_NE(::ftruncate(memory->fd.get(), 4096), 0);
  const int seals = ::fcntl(memory->fd.get(), F_GET_SEALS);
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_EQ(seals & kSize, kSize);
}

TEST(Memory, with_the_seal_is_kept) {
  auto memory = create_shared(8192, false, "test");
  ASSERT_TRUE(memory.ok());
  EXPECT_FALSE(give_back(*memory, 0, 8192));
}

void* block(Arena& arena, std::size_t bytes) {
  auto memory = arena.allocate(bytes);
  EXPECT_TRUE(memory.ok()) << memory.status().message();
  return memory.ok() ? *memory : nullptr;
}
constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(Arena, finds_only_what_lies_inside) {
  Arena arena;
  auto* const at = static_cast<std::byte*>(block(arena, 20 * kMiB));  // has a region of its own
  EXPECT_TRUE(arena.find(at, 20 * kMiB).has_value());
  EXPECT_TRUE(arena.find(at + 9000, 1000).has_value());
  EXPECT_FALSE(arena.find(at + 9000, 20 * kMiB).has_value());
  EXPECT_FALSE(arena.find(at - 1, 1).has_value());
  EXPECT_TRUE(arena.free(at).ok());
  EXPECT_FALSE(arena.free(at).ok());
}

TEST(Arena, says_how_much_it_has_at_most) {
  Arena arena;
  const auto memory = arena.allocate(~std::size_t{0});
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), Code::invalid_argument);
  EXPECT_NE(memory.status().message().find("70368744177664 are the most"), std::string::npos)
      << memory.status().message();
}

/// A process that only waits, at the other end of a socket.
class Other {
 public:
  Other() {
    const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{AF_UNIX, {}};
    socklen_t size = sizeof(sa_family_t);  // the kernel picks a name
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    size = sizeof address;
    EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
      ::connect(fd, reinterpret_cast<sockaddr*>(&address), size);
      for (;;) ::pause();
    }
    socket_.reset(::accept(listener.get(), nullptr, nullptr));
  }
  ~Other() { end(); }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  int socket() const { return socket_.get(); }
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd socket_;
};

Result<CmaReader> reader_of(int socket) {
  ANYCCL_TRY(link::PeerProcess process, link::PeerProcess::of(socket));
  return CmaReader(std::make_shared<const link::PeerProcess>(std::move(process)));
}

std::uint64_t here = 42;

TEST(CmaReader, is_read_where_it_is) {
  const Other other;
  here = 43;  // here, not there
  const auto memory = reader_of(other.socket());
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  std::uint64_t read = 0;
  const Status status = memory->read(reinterpret_cast<std::byte*>(&read),
                                     reinterpret_cast<std::uint64_t>(&here), sizeof read);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(read, 42U);
  here = 42;
}

TEST(CmaReader, that_is_not_mapped_is_an_error) {
  const Other other;
  const auto memory = reader_of(other.socket());
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  std::byte read[8];
  const Status status = memory->read(read, 4096, sizeof read);
  EXPECT_EQ(status.code(), Code::system_error);
  EXPECT_NE(status.message().find("Bad address"), std::string::npos) << status.message();
}

TEST(CmaReader, is_only_lent_where_readers_will_find_it) {
  constexpr std::size_t kPage = 4096;
  const std::vector<std::byte> own(3 * kPage);
  EXPECT_TRUE(CmaReader::is_readable(own.data(), own.size()));
  EXPECT_TRUE(CmaReader::is_readable(nullptr, 0));
  auto* const pages = static_cast<std::byte*>(
      ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(::mprotect(pages + kPage, kPage, PROT_NONE), 0);  // as memory of a device is
  EXPECT_TRUE(CmaReader::is_readable(pages, kPage));
  EXPECT_FALSE(CmaReader::is_readable(pages, kPage + 1));
  EXPECT_FALSE(CmaReader::is_readable(pages + kPage, kPage));
  ::munmap(pages, 2 * kPage);
}

TEST(CmaReader, of_who_has_ended_is_not_read) {
  Other other;
  const auto memory = reader_of(other.socket());
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  other.end();
  std::uint64_t read = 0;
  const Status status = memory->read(reinterpret_cast<std::byte*>(&read),
                                     reinterpret_cast<std::uint64_t>(&here), sizeof read);
  EXPECT_EQ(status.code(), Code::remote_error) << status.message();
}

TEST(Arena, gives_aligned_blocks_that_do_not_overlap) {
  Arena arena;
  std::mt19937 random(2026);
  std::map<std::byte*, std::size_t> live;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0 && !live.empty()) {
      const auto gone = std::next(live.begin(), static_cast<long>(random() % live.size()));
      ASSERT_TRUE(arena.free(gone->first).ok());
      live.erase(gone);
      continue;
    }
    const std::size_t bytes = random() % 100 == 0 ? random() % (2 * kMiB) : random() % 5000;
    auto* const at = static_cast<std::byte*>(block(arena, bytes));
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0U);
    const auto next = live.lower_bound(at);
    ASSERT_TRUE(next == live.end() || at + bytes <= next->first);
    ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= at);
    live.emplace(at, std::max<std::size_t>(1, bytes));
  }
  for (const auto& [at, bytes] : live) ASSERT_TRUE(arena.free(at).ok());
  EXPECT_LE(arena.bytes(), 32 * kMiB);
}

TEST(Arena, puts_small_blocks_into_one_region) {
  Arena arena;
  auto* const a = static_cast<std::byte*>(block(arena, 100));
  auto* const b = static_cast<std::byte*>(block(arena, 70000));
  EXPECT_EQ(arena.find(a, 100)->id, arena.find(b, 70000)->id);
  EXPECT_EQ(arena.bytes(), kMiB);
}

TEST(Arena, joins_what_was_freed) {
  Arena arena;
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(block(arena, kMiB / 16));
  for (const int i : {3, 1, 2, 0, 15, 14, 5, 7, 9, 11, 13, 4, 6, 8, 10, 12})
    ASSERT_TRUE(arena.free(blocks[static_cast<std::size_t>(i)]).ok());
  EXPECT_EQ(block(arena, kMiB), *std::min_element(blocks.begin(), blocks.end()));
  EXPECT_EQ(arena.bytes(), kMiB);
}

TEST(Arena, returns_memory_to_the_system_and_never_reuses_a_window) {
  Arena arena;
  void* const large = block(arena, 40 * kMiB);
  const std::uint64_t id = arena.find(large, 1)->id;
  EXPECT_NE(arena.hold(id), nullptr);
  ASSERT_TRUE(arena.free(large).ok());
  EXPECT_EQ(arena.hold(id), nullptr);
  EXPECT_EQ(arena.bytes(), 0U);
  EXPECT_EQ(arena.returned(), 1U);
  EXPECT_NE(arena.find(block(arena, 40 * kMiB), 1)->id, id);
}

TEST(Arena, serves_threads_at_once) {
  Arena arena;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&arena, t] {
      for (std::size_t i = 0; i < 300; ++i) {
        const std::size_t bytes = 1 + (i * 7919 + static_cast<std::size_t>(t)) % 200000;
        void* const at = block(arena, bytes);
        std::memset(at, t, bytes);
        ASSERT_EQ(static_cast<unsigned char*>(at)[bytes - 1], t);
        ASSERT_TRUE(arena.free(at).ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

/// The child sees what its parent wrote, and neither sees what the other writes then.
TEST(Arena, is_private_in_a_forked_child) {
  Arena& arena = Arena::of_process();
  auto* const x = static_cast<int*>(block(arena, 2 * kMiB));
  x[0] = 1, x[300000] = 2;
  const pid_t child = ::fork();
  if (child == 0) {
    const bool right = x[0] == 1 && x[300000] == 2 && !arena.find(x, 4);
    x[0] = x[300000] = 7;
    auto own = arena.allocate(100);
    const bool anew =
        own.ok() && arena.find(*own, 100) && arena.free(x).ok() && arena.free(*own).ok();
    ::_exit(right && anew ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(x[0], 1);
  EXPECT_EQ(x[300000], 2);
  EXPECT_TRUE(arena.find(x, 4).has_value());
  ASSERT_TRUE(arena.free(x).ok());
}

/// One publisher, two readers.
class SlotTrackerTest : public testing::Test {
 protected:
  SlotTrackerTest() {
    layout_.ranks = 3;
    layout_.banks = 2;
    layout_.slots = 2;
    layout_.ring_bytes = 1024;
    seen_ = std::make_unique<PeerProgress>(3);
    seen_->add(1, theirs_[0]);
    seen_->add(2, theirs_[1]);
    tracker_ = std::make_unique<SlotTracker>(layout_, *seen_);
  }
  /// Both readers must have posted `tick`.
  void publish(std::uint64_t operation, std::uint32_t number, std::size_t staged = 0,
               std::uint32_t tick = 5) {
    const std::array<ReaderOf, 2> readers = {ReaderOf{1, tick, 0, 0}, ReaderOf{2, tick, 0, 0}};
    if (staged > 0) {
      ASSERT_NE(tracker_->find_extent(staged), SlotTracker::kNone);
    }
    Outgoing out;
    out.operation = operation;
    out.number = number;
    out.readers = readers;
    tracker_->record(out, staged > 0);
  }
  bool is_free(std::uint64_t operation, std::uint32_t number) {
    return tracker_->is_free(tracker_->slot_of(operation, number));
  }

  Layout layout_;
  std::array<ProgressLine, 2> theirs_ = {};
  std::unique_ptr<PeerProgress> seen_;
  std::unique_ptr<SlotTracker> tracker_;
};

TEST_F(SlotTrackerTest, fresh_slots_are_free) {
  EXPECT_TRUE(is_free(1, 0));
  EXPECT_TRUE(is_free(2, 7));
}
TEST_F(SlotTrackerTest, a_slot_is_free_when_every_reader_has_posted_past_it) {
  publish(1, 0);
  EXPECT_FALSE(is_free(3, 0));
  theirs_[0].lane[0] = progress_word(1, 5);
  EXPECT_FALSE(is_free(3, 0));
  theirs_[1].lane[0] = progress_word(1, 4);
  EXPECT_FALSE(is_free(3, 0));
  theirs_[1].lane[0] = progress_word(1, 5);
  EXPECT_TRUE(is_free(3, 0));
}
TEST_F(SlotTrackerTest, operations_may_have_any_number_of_ticks) {
  for (const std::uint32_t tick : {1U << 24, 3U << 24, 1U << 31, ~0U, 20U}) {  // wraps around
    publish(1, 0, 0, tick);
    theirs_[0].lane[0] = theirs_[1].lane[0] = progress_word(1, tick - 1);
    EXPECT_FALSE(is_free(1, 2)) << tick;
    theirs_[0].lane[0] = theirs_[1].lane[0] = progress_word(1, tick + 7);
    EXPECT_TRUE(is_free(1, 2)) << tick;
  }
}
TEST_F(SlotTrackerTest, progress_in_another_operation_frees_nothing) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40;
  publish(kMany, 0);
  theirs_[0].lane[0] = theirs_[1].lane[0] = progress_word(kMany - 1, 900);
  EXPECT_FALSE(is_free(kMany + 2, 0));
  theirs_[0].lane[0] = theirs_[1].lane[0] = progress_word(kMany, 5);
  EXPECT_TRUE(is_free(kMany + 2, 0));
}
TEST_F(SlotTrackerTest, a_slot_is_free_when_the_readers_have_finished_the_operation) {
  publish(1, 0);
  theirs_[0].finished = 1;
  theirs_[1].finished = 4;
  EXPECT_TRUE(is_free(3, 0));
}
TEST_F(SlotTrackerTest, a_slot_is_free_when_everyone_is_known_to_be_further) {
  publish(1, 0);
  seen_->everyone_finished(1);
  EXPECT_TRUE(is_free(3, 0));
}
TEST_F(SlotTrackerTest, other_banks_and_slots_do_not_matter) {
  publish(1, 0);
  EXPECT_TRUE(is_free(1, 1));
  EXPECT_TRUE(is_free(2, 0));
  EXPECT_FALSE(is_free(1, 2));  // the same slot, later in the operation
}
TEST_F(SlotTrackerTest, the_ring_is_used_again_only_when_its_readers_are_through) {
  publish(1, 0, 500);
  publish(1, 1, 500);
  EXPECT_EQ(tracker_->find_extent(500), SlotTracker::kNone);
  theirs_[0].finished = theirs_[1].finished = 1;
  EXPECT_NE(tracker_->find_extent(500), SlotTracker::kNone);
}
TEST_F(SlotTrackerTest, a_stretch_never_runs_over_the_end_of_the_ring) {
  publish(1, 0, 700);
  theirs_[0].finished = theirs_[1].finished = 1;
  EXPECT_EQ(tracker_->find_extent(700), 0U);
}
TEST_F(SlotTrackerTest, a_ring_that_nobody_reads_is_used_from_its_beginning_where_it_is_in_caches) {
  layout_.ring_bytes = 1 << 20;
  tracker_ = std::make_unique<SlotTracker>(layout_, *seen_);
  publish(1, 0, 200000);
  theirs_[0].finished = theirs_[1].finished = 1;
  EXPECT_NE(tracker_->find_extent(10), 0U) << "both cores have just had these lines";
  publish(2, 0, 200000);
  const std::size_t next = tracker_->find_extent(10);
  EXPECT_GE(next, 400000U) << "the last publication is read";
  publish(2, 1, 10);
  theirs_[0].lane[0] = theirs_[1].lane[0] = progress_word(2, 5);
  EXPECT_EQ(tracker_->find_extent(10), 0U);
}
TEST_F(SlotTrackerTest, a_ring_is_not_begun_again_early_while_anything_is_read) {
  layout_.ring_bytes = 1 << 20;
  tracker_ = std::make_unique<SlotTracker>(layout_, *seen_);
  publish(1, 0, 280000);
  publish(2, 0, 10);
  EXPECT_NE(tracker_->find_extent(10), 0U);
  theirs_[0].finished = 2;
  EXPECT_NE(tracker_->find_extent(10), 0U);
  theirs_[1].finished = 2;
  EXPECT_EQ(tracker_->find_extent(10), 0U);
}

}  // namespace
}  // namespace anyccl::shm
