// A hostile rank writes random bytes over all memory that it shares with others, while it takes
// part in their operations. They end with a result or an error at their time limit, and touch
// nothing but their buffers.

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "support/effort.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;
constexpr int kHostile = 2, kRanks = 3;

/// What this process may write of the library's shared memory: its own and its peers' doorbells.
std::vector<std::span<std::byte>> shared_memory() {
  std::vector<std::span<std::byte>> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (line.find(" rw-s ") != line.npos && line.find("memfd:anyccl") != line.npos &&
        std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2)
      found.emplace_back(reinterpret_cast<std::byte*>(begin), end - begin);
  }
  return found;
}

/// Writes over one word: with a random one, or one that is nearly right.
void scribble_once(std::span<std::byte> memory, std::mt19937_64& random) {
  // Flags, progress, records and slots come first, and say more than the bytes behind them.
  const std::size_t words = memory.size() / 8, first = std::min<std::size_t>(words, 2048);
  auto* const at = reinterpret_cast<std::uint64_t*>(memory.data()) +
                   random() % (random() % 8 == 0 ? words : first);
  const std::atomic_ref word(*at);
  switch (random() % 4) {
    case 0:
      return word.store(random(), std::memory_order_relaxed);
    case 1:
      return word.store(random() % 65536, std::memory_order_relaxed);
    case 2:
      return static_cast<void>(
          word.fetch_xor(std::uint64_t{1} << random() % 64, std::memory_order_relaxed));
    default:
      return static_cast<void>(word.fetch_add(random() % 8 - 4, std::memory_order_relaxed));
  }
}

/// Buffers with bytes around them that nobody may touch.
class Guarded {
 public:
  explicit Guarded(std::size_t count) : memory_(count + 2 * kGuard, kUntouched), count_(count) {}
  std::span<float> buffer() { return std::span(memory_).subspan(kGuard, count_); }
  bool is_whole() const {
    const auto untouched = [](float x) { return x == kUntouched; };
    return std::all_of(memory_.begin(), memory_.begin() + kGuard, untouched) &&
           std::all_of(memory_.end() - kGuard, memory_.end(), untouched);
  }

 private:
  static constexpr std::ptrdiff_t kGuard = 16384;
  static constexpr float kUntouched = 12345;
  std::vector<float> memory_;
  std::size_t count_;
};

/// One operation of each kind, by turns, of sizes that lie in slots, in the ring and in fragments.
Status operation(Communicator& comm, int turn, Guarded& in, Guarded& out) {
  constexpr std::size_t kCounts[] = {2, 200, 5000, 40000};
  const std::size_t count = kCounts[turn / 4 % 4];
  const View from{in.buffer().data(), count, DType::f32},
      to{out.buffer().data(), count, DType::f32};
  const Rank next{(index(comm.rank()) + 1) % kRanks}, last{(index(comm.rank()) + 2) % kRanks};
  switch (turn % 4) {
    case 0:
      return wait(comm.all_reduce(from, to, ReduceOp::sum));
    case 1:
      return wait(comm.broadcast(from, to, Rank{turn / 16 % kRanks}));
    case 2:
      return wait(comm.barrier());
    default:
      return group([&] {
        static_cast<void>(comm.send(from, next));
        static_cast<void>(comm.recv(to, last));
      });
  }
}

/// Until one fails, or for many operations.
Status operations(Communicator& comm) {
  constexpr int kMost = 2000;
  Guarded in(40000), out(40000);
  Status status;
  for (int turn = 0; turn < kMost && status.ok(); ++turn) status = operation(comm, turn, in, out);
  EXPECT_TRUE(in.is_whole() && out.is_whole());
  return status;
}

/// Takes part, and scribbles, until both others have said that they are done.
[[noreturn]] void be_hostile(Communicator& comm, int done, std::uint64_t seed) {
  std::thread scribbler([&] {
    std::mt19937_64 random(seed);
    const std::vector<std::span<std::byte>> memory = shared_memory();
    if (memory.empty()) ::_exit(5);
    int left = kRanks - 1;
    while (left > 0) {
      for (int i = 0; i < 50; ++i) scribble_once(memory[random() % memory.size()], random);
      std::array<char, 2> said{};
      pollfd entry{done, POLLIN, 0};
      if (::poll(&entry, 1, 0) == 1)
        left -= static_cast<int>(::read(done, said.data(), said.size()));
    }
    ::_exit(0);
  });
  static_cast<void>(operations(comm));
  scribbler.join();
  ::_exit(0);
}

TEST(Scribble, of_a_hostile_rank_harms_nobody) {
  const auto seed = std::random_device()();
  std::printf("  seed %u\n", seed);
  for (unsigned round = 0; round < effort(3U, 5U, 300U); ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const auto outcomes = run_processes(
        kRanks,
        [&](Communicator& comm) {
          if (comm.rank() == Rank{kHostile}) be_hostile(comm, ends[0], seed + round);
          if (const Status status = operations(comm); !status.ok()) {
            EXPECT_FALSE(status.message().empty());
            EXPECT_OK(comm.abort());
          }
          EXPECT_EQ(::write(ends[1], "x", 1), 1);
        },
        [](int) {
          return Variables{{"ANYCCL_OP_TIMEOUT", "1"}, {"ANYCCL_TRANSPORT", "shm"}};
        });
    for (int rank = 0; rank < kHostile; ++rank) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      EXPECT_EQ(outcome.exit_code, 0)
          << "rank " << rank << ", round " << round << ": " << outcome.output;
    }
    ::close(ends[0]);
    ::close(ends[1]);
  }
}

}  // namespace
}  // namespace anyccl::test
