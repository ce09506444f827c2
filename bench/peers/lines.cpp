// The time in which two cores pass lines to each other: each writes so many bytes and reads as many
// that the other has just written, both at once. No library that passes data through shared memory
// takes less. The word that says that the bytes are there follows them, in the same line if they
// are few.
//   lines CALLS BUDGET_MS BYTES...     prints rows as measure.hpp has them
#include <cstring>

#include "threads.hpp"

namespace {

constexpr std::size_t kTile = 65536;
/// A line that both cores have had just now is slower to write than one of some hundred KiB before:
/// with 2 tiles in turns the exchange takes up to x1.25 as long (docs/adr/0075).
constexpr std::size_t kTiles = 32;
using Word = std::atomic<std::uint64_t>;

/// The tiles of one thread, each with its word.
struct Tiles {
  alignas(4096) std::byte bytes[kTiles][kTile + 64];
  Word& word(std::size_t tile) {
    return *reinterpret_cast<Word*>(bytes[tile % kTiles] + sizeof bytes[0] - sizeof(Word));
  }
  std::byte* end(std::size_t tile) { return reinterpret_cast<std::byte*>(&word(tile)); }
};

/// Fetches lines well before it writes them: the other core has read them.
void write(std::byte* end, std::size_t count, std::uint64_t value) {
  constexpr std::size_t kAhead = 2048;
  std::byte* const begin = end - count / 8 * 8;
  for (std::size_t i = 0; i < std::min(kAhead, count); i += 64) __builtin_prefetch(begin + i, 1);
  for (std::size_t i = 0; i < count / 8 * 8; i += 64) {
    if (i + kAhead < count) __builtin_prefetch(begin + i + kAhead, 1);
    const std::size_t few = std::min<std::size_t>(64, count / 8 * 8 - i);
    for (std::size_t k = 0; k < few; k += 8) std::memcpy(begin + i + k, &value, 8);
  }
}

/// Reads every line.
std::uint64_t read(const std::byte* end, std::size_t count) {
  std::uint64_t sum = 0;
  const auto* const words = reinterpret_cast<const std::uint64_t*>(end - count / 8 * 8);
  for (std::size_t i = 0; i < count / 8; ++i) sum += words[i];
  return sum;
}

class Exchange {
 public:
  Exchange(Tiles& mine, Tiles& theirs) : mine_(mine), theirs_(theirs) {}

  void run(std::size_t bytes) {
    for (std::size_t left = bytes; left > 0;) {
      const std::size_t count = std::min(left, kTile);
      ++tile_;
      write(mine_.end(tile_), count, tile_);
      mine_.word(tile_).store(tile_, std::memory_order_release);
      // Pairs with the store of the other thread: its bytes are there.
      while (theirs_.word(tile_).load(std::memory_order_acquire) != tile_) {
      }
      sum_ += read(theirs_.end(tile_), count);
      asm volatile("" ::"r"(sum_) : "memory");  // it is read, although nobody wants the sum
      left -= count;
    }
  }

 private:
  Tiles &mine_, &theirs_;
  std::uint64_t tile_ = 0, sum_ = 0;
};

void run(peers::Team& team, Tiles* tiles, int rank, const peers::Limits& limits,
         const std::vector<std::size_t>& sizes) {
  peers::Member member(team, rank);
  Exchange exchange(tiles[rank], tiles[1 - rank]);
  for (const std::size_t bytes : sizes) {
    const peers::Case c{"send_recv", rank, 2, bytes / sizeof(float)};
    const peers::Call call{[&] { exchange.run(bytes); }};
    peers::Buffer none(0, 0);
    const int calls = calls_for(member, c, call, limits);
    std::vector<double> us = timed_calls(member, c, call, none, none, calls);
    member.maximum(us);
    if (rank == 0) std::printf("%zu\t%.4f\t%d\t0\tlines\n", bytes, peers::median_of(us), calls);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<int> cores = peers::cores();
  if (argc < 4 || cores.size() < 2) {
    std::fprintf(stderr, "usage: lines CALLS BUDGET_MS BYTES..., with two cores\n");
    return 2;
  }
  const peers::Limits limits{std::atoi(argv[1]), std::atof(argv[2]) * 1e3, 0};
  std::vector<std::size_t> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  peers::Team team(2);
  static Tiles tiles[2];
  peers::on_threads(2, cores, [&](int rank) { run(team, tiles, rank, limits, sizes); });
}
