// Who sleeps is woken: in a model, for every order in which the steps and the stores of two cores
// can happen, and with the transport itself.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "unit/shm/pair_of_ranks.hpp"

namespace {

std::atomic<int> fences{0};

}  // namespace

/// In place of libc's, to count the fences of the transport.
extern "C" long syscall(long number, ...) noexcept {
  const auto real = reinterpret_cast<long (*)(long, ...)>(::dlsym(RTLD_NEXT, "syscall"));
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_membarrier && arguments[0] == MEMBARRIER_CMD_GLOBAL_EXPEDITED) ++fences;
  return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
              arguments[5]);
}

namespace anyccl::shm {
namespace {

/// One publisher and one sleeper on cores with store buffers: each core sees its own stores at
/// once, the other one later, in order.
struct World {
  bool word = false, sleeping = false;               // in memory
  bool word_buffered = false;                        // by the publisher
  bool sleeping_buffered = false;                    // by the sleeper
  int doorbell = 0, seen = 0;                        // the doorbell is only changed atomically
  bool rings = false, asleep = false, done = false;  // what they know or do
  int publisher = 0, sleeper = 0;                    // the next step of each
  auto operator<=>(const World&) const = default;
};

class Model {
 public:
  explicit Model(bool fences) : fences_(fences) {}

  /// Whether some order of steps ends with the sleeper asleep though the word is there.
  bool can_miss_the_word() {
    visit({});
    return missed_;
  }
  std::size_t states() const { return visited_.size(); }

 private:
  void visit(const World& w) {
    if (!visited_.insert(w).second) return;
    bool moved = false;
    const auto go = [&](const std::optional<World>& next) {
      if (!next) return;
      moved = true;
      visit(*next);
    };
    go(drain_publisher(w));
    go(drain_sleeper(w));
    go(publish(w));
    go(sleep(w));
    if (!moved && !w.done) missed_ = true;
  }

  static std::optional<World> drain_publisher(World w) {
    if (!w.word_buffered) return {};
    w.word = true, w.word_buffered = false;
    return w;
  }
  static std::optional<World> drain_sleeper(World w) {
    if (!w.sleeping_buffered) return {};
    w.sleeping = true, w.sleeping_buffered = false;
    return w;
  }

  /// ShmTransport::reveal() and PeerTable::ring().
  static std::optional<World> publish(World w) {
    switch (w.publisher++) {
      case 0:
        w.word_buffered = true;
        return w;
      case 1:
        w.rings = w.sleeping;
        return w;
      case 2:
        if (!w.rings) return w;
        if (w.word_buffered) return {};  // an atomic read-modify-write waits for its own stores
        ++w.doorbell;
        return w;
      case 3:
        if (w.rings && w.asleep) w.asleep = false, w.done = true;
        return w;
      default:
        return {};
    }
  }

  /// ShmTransport::prepare_sleep(), a look, and sleep().
  std::optional<World> sleep(World w) const {
    if (w.done || w.asleep) return {};
    switch (w.sleeper++) {
      case 0:
        w.seen = w.doorbell;
        return w;
      case 1:
        w.sleeping_buffered = true;
        return w;
      case 2:
        if (fences_) drain_both(w);
        return w;
      case 3:
        w.done = w.word;
        return w;
      case 4:
        if (w.doorbell != w.seen)
          w.done = true;  // the futex has another value
        else
          w.asleep = true;
        return w;
      default:
        return {};
    }
  }
  static void drain_both(World& w) {
    w.word = w.word || w.word_buffered, w.word_buffered = false;
    w.sleeping = w.sleeping || w.sleeping_buffered, w.sleeping_buffered = false;
  }

  const bool fences_;
  bool missed_ = false;
  std::set<World> visited_;
};

TEST(WakeUpModel, never_misses_the_word) {
  Model model(true);
  EXPECT_FALSE(model.can_miss_the_word());
  EXPECT_GT(model.states(), 50U);
}

TEST(WakeUpModel, would_miss_it_without_fences) {
  EXPECT_TRUE(Model(false).can_miss_the_word());
}

void send_empty(Transport& t, std::uint64_t message) {
  const Fragment out{.peer = t.peers()[0], .message = message};
  while (t.messages().send(out, nullptr) == Messages::Sent::busy) std::this_thread::yield();
}

bool receive_empty(Transport& t, std::uint64_t message) {
  return t.messages().receive({.peer = t.peers()[0], .message = message}, 0, nullptr);
}

TEST(WakeUp, comes_whenever_the_peer_publishes) {
  constexpr std::uint64_t kMessages = 20000;
  const auto ranks = test::make_pair_of_ranks();
  ASSERT_TRUE(ranks[0]->wakes_surely()) << "the kernel has no membarrier";
  std::atomic<int> missed{0};
  const auto ping_pong = [&](std::size_t me) {
    std::minstd_rand random(static_cast<unsigned>(me));
    Transport& t = *ranks[me];
    for (std::uint64_t message = 1; message <= kMessages; ++message) {
      if (me == 0) send_empty(t, message);
      while (!receive_empty(t, message)) {
        for (auto pause = random() % 512; pause > 0; --pause)
          std::atomic_signal_fence(std::memory_order_seq_cst);
        const auto start = Deadline::Clock::now();
        t.prepare_sleep(Transport::Alarm::own);
        if (receive_empty(t, message)) {
          t.sleep(std::chrono::nanoseconds(0));
          break;
        }
        t.sleep(std::chrono::milliseconds(900));
        if (Deadline::Clock::now() - start > std::chrono::milliseconds(850)) ++missed;
      }
      if (me == 1) send_empty(t, message);
    }
  };
  std::thread other(ping_pong, 1);
  ping_pong(0);
  other.join();
  EXPECT_EQ(missed, 0);
}

/// The test above finds a missing fence only if two cores meet at the wrong moment.
TEST(WakeUp, is_paid_for_by_a_fence_before_the_sleep) {
  const auto ranks = test::make_pair_of_ranks();
  const int before = fences;
  ranks[0]->prepare_sleep(Transport::Alarm::own);
  EXPECT_EQ(fences, before + 1);
  ranks[0]->sleep(std::chrono::nanoseconds(0));
}

/// Publishes `bytes` bytes of operation 1 for rank 1, if there is room.
bool publishes(Transport& t, std::uint32_t number, std::size_t bytes) {
  const ReaderOf reader{1, number + 1, 0, 0};
  const Outgoing out{
      .operation = 1, .number = number, .bytes = bytes, .total = bytes, .readers = {&reader, 1}};
  if (t.publications().reserve(out) == nullptr) return false;
  t.publications().publish(out);
  return true;
}
/// The same by a rank that is about to sleep.
bool publishes_before_sleep(Transport& t, std::uint32_t number, std::size_t bytes) {
  t.prepare_sleep(Transport::Alarm::own);
  const bool published = publishes(t, number, bytes);
  t.sleep(std::chrono::nanoseconds(0));
  return published;
}

TEST(WakeUp, is_not_sure_for_a_publisher_that_has_not_asked_for_progress) {
  constexpr std::size_t kMost = test::kRingBytes / 4 * 3;
  const auto ranks = test::make_pair_of_ranks();
  Transport& t = *ranks[0];
  EXPECT_TRUE(publishes_before_sleep(t, 0, kMost));
  EXPECT_TRUE(t.wakes_surely());
  EXPECT_FALSE(publishes_before_sleep(t, 16, 8)) << "the slot is taken";
  EXPECT_FALSE(t.wakes_surely());
  EXPECT_FALSE(publishes_before_sleep(t, 1, kMost)) << "the ring is full";
  EXPECT_TRUE(t.wakes_surely()) << "it had to wait, so it has asked";
  ranks[1]->publications().post(1, 0, 1);
  EXPECT_TRUE(publishes_before_sleep(t, 1, kMost));
  EXPECT_TRUE(t.wakes_surely());
}

TEST(WakeUp, comes_whenever_a_reader_posts_progress) {
  constexpr std::uint32_t kNumbers = 5000;
  const auto ranks = test::make_pair_of_ranks();
  int missed = 0;
  std::thread reader([&] {
    std::minstd_rand random(1);
    for (std::uint32_t number = 0; number < kNumbers; ++number) {
      const Incoming in{.operation = 1, .number = number, .rank = 0, .bytes = 8, .whole = 8};
      while (ranks[1]->publications().poll(in) == nullptr) std::this_thread::yield();
      for (auto pause = random() % 512; pause > 0; --pause)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      ranks[1]->publications().post(1, 0, number + 1);
    }
  });
  Transport& t = *ranks[0];
  for (std::uint32_t number = 0; number < kNumbers; ++number) {
    const auto start = Deadline::Clock::now();
    while (!publishes(t, number, 8)) {
      t.prepare_sleep(Transport::Alarm::own);
      const bool published = publishes(t, number, 8);
      EXPECT_TRUE(published || t.wakes_surely());
      t.sleep(std::chrono::milliseconds(published ? 0 : 900));
      if (published) break;
    }
    if (Deadline::Clock::now() - start > std::chrono::milliseconds(850)) ++missed;
  }
  reader.join();
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace anyccl::shm
