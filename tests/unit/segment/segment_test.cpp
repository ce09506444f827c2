// Memory that is shown to peers, and when a publisher may use it again.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "platform/transport/segment/arena.hpp"
#include "platform/transport/segment/foreign.hpp"
#include "platform/transport/segment/ledger.hpp"
#include "platform/transport/segment/memory.hpp"

namespace anyccl {
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

TEST(Arena, finds_only_what_lies_inside) {
  Arena arena;
  auto memory = arena.allocate(10000);
  ASSERT_TRUE(memory.ok());
  auto* const at = static_cast<std::byte*>(*memory);
  EXPECT_TRUE(arena.find(at, 10000).has_value());
  EXPECT_TRUE(arena.find(at + 9000, 1000).has_value());
  EXPECT_FALSE(arena.find(at + 9000, 100000).has_value());
  EXPECT_FALSE(arena.find(at - 1, 1).has_value());
  EXPECT_TRUE(arena.free(at).ok());
  EXPECT_FALSE(arena.find(at, 1).has_value());
  EXPECT_FALSE(arena.free(at).ok());
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

std::uint64_t here = 42;

TEST(ForeignMemory, is_read_where_it_is) {
  const Other other;
  here = 43;  // here, not there
  const auto memory = ForeignMemory::of_peer(other.socket());
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  std::uint64_t read = 0;
  const Status status = memory->read(reinterpret_cast<std::byte*>(&read),
                                     reinterpret_cast<std::uint64_t>(&here), sizeof read);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(read, 42U);
  here = 42;
}

TEST(ForeignMemory, that_is_not_mapped_is_an_error) {
  const Other other;
  const auto memory = ForeignMemory::of_peer(other.socket());
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  std::byte read[8];
  const Status status = memory->read(read, 4096, sizeof read);
  EXPECT_EQ(status.code(), Code::system_error);
  EXPECT_NE(status.message().find("Bad address"), std::string::npos) << status.message();
}

TEST(ForeignMemory, of_who_has_ended_is_not_read) {
  Other other;
  const auto memory = ForeignMemory::of_peer(other.socket());
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  other.end();
  std::uint64_t read = 0;
  const Status status = memory->read(reinterpret_cast<std::byte*>(&read),
                                     reinterpret_cast<std::uint64_t>(&here), sizeof read);
  EXPECT_EQ(status.code(), Code::remote_error) << status.message();
}

/// One publisher, two readers.
class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    layout_.ranks = 3;
    layout_.banks = 2;
    layout_.slots = 2;
    layout_.ring_bytes = 1024;
    seen_ = std::make_unique<PeerProgress>(3);
    seen_->add(1, theirs_[0]);
    seen_->add(2, theirs_[1]);
    ledger_ = std::make_unique<Ledger>(layout_, *seen_);
  }
  /// Both readers must have posted tick 5.
  void publish(std::uint64_t operation, std::uint32_t number, std::size_t staged = 0) {
    static constexpr std::array<ReaderOf, 2> kReaders = {ReaderOf{1, 5, 0, 0},
                                                         ReaderOf{2, 5, 0, 0}};
    if (staged > 0) {
      ASSERT_NE(ledger_->find_stretch(staged), Ledger::kNone);
    }
    Outgoing out;
    out.operation = operation;
    out.number = number;
    out.readers = kReaders;
    ledger_->record(out, staged > 0);
  }
  bool is_free(std::uint64_t operation, std::uint32_t number) {
    return ledger_->is_free(ledger_->slot_of(operation, number));
  }

  Layout layout_;
  std::array<Progress, 2> theirs_ = {};
  std::unique_ptr<PeerProgress> seen_;
  std::unique_ptr<Ledger> ledger_;
};

TEST_F(LedgerTest, fresh_slots_are_free) {
  EXPECT_TRUE(is_free(1, 0));
  EXPECT_TRUE(is_free(2, 7));
}
TEST_F(LedgerTest, a_slot_is_free_when_every_reader_has_posted_past_it) {
  publish(1, 0);
  EXPECT_FALSE(is_free(3, 0));
  theirs_[0].lane[0] = std::uint64_t{1} << 24 | 5;
  EXPECT_FALSE(is_free(3, 0));
  theirs_[1].lane[0] = std::uint64_t{1} << 24 | 4;
  EXPECT_FALSE(is_free(3, 0));
  theirs_[1].lane[0] = std::uint64_t{1} << 24 | 5;
  EXPECT_TRUE(is_free(3, 0));
}
TEST_F(LedgerTest, a_slot_is_free_when_the_readers_have_finished_the_operation) {
  publish(1, 0);
  theirs_[0].finished = 1;
  theirs_[1].finished = 4;
  EXPECT_TRUE(is_free(3, 0));
}
TEST_F(LedgerTest, a_slot_is_free_when_everyone_is_known_to_be_further) {
  publish(1, 0);
  seen_->everyone_finished(1);
  EXPECT_TRUE(is_free(3, 0));
}
TEST_F(LedgerTest, other_banks_and_slots_do_not_matter) {
  publish(1, 0);
  EXPECT_TRUE(is_free(1, 1));
  EXPECT_TRUE(is_free(2, 0));
  EXPECT_FALSE(is_free(1, 2));  // the same slot, later in the operation
}
TEST_F(LedgerTest, the_ring_is_used_again_only_when_its_readers_are_through) {
  publish(1, 0, 500);
  publish(1, 1, 500);
  EXPECT_EQ(ledger_->find_stretch(500), Ledger::kNone);
  theirs_[0].finished = theirs_[1].finished = 1;
  EXPECT_NE(ledger_->find_stretch(500), Ledger::kNone);
}
TEST_F(LedgerTest, a_stretch_never_runs_over_the_end_of_the_ring) {
  publish(1, 0, 700);
  theirs_[0].finished = theirs_[1].finished = 1;
  EXPECT_EQ(ledger_->find_stretch(700), 0U);
}

}  // namespace
}  // namespace anyccl
