// An AllReduce of two threads without a library: what a loop gets that does no more than move the
// bytes through shared memory. Tile by tile, each copies the half that the other adds up, adds up
// its own half, and copies the other's sum; one meeting for each tile.
//   two_shot all_reduce CALLS BUDGET_MS OFFSET BYTES...
#include "threads.hpp"

namespace {

using peers::Case;

constexpr std::size_t kTiles[] = {8192, 32768, 131072};  // floats

/// The rooms of one thread, for two tiles at a time: halves of its input, and of its sums.
struct Rooms {
  Rooms() : inputs{{kMost, 0}, {kMost, 0}}, sums{{kMost, 0}, {kMost, 0}} {}
  static constexpr std::size_t kMost = kTiles[2] / 2 + 1;
  peers::Buffer inputs[2], sums[2];
  alignas(128) std::atomic<std::size_t> meetings{0};
};

class TwoShot {
 public:
  TwoShot(Rooms* rooms, std::size_t tile) : rooms_(rooms), tile_(tile) {}

  void run(const Case& c, const float* in, float* out) {
    Rooms &mine = rooms_[c.rank], &theirs = rooms_[1 - c.rank];
    const std::size_t tiles = (c.count + tile_ - 1) / tile_;
    for (std::size_t s = 0; s < tiles + 2; ++s) {  // three tiles are on their way
      if (s < tiles) {
        const Part part = part_of(c, s, 1 - c.rank);
        std::copy_n(in + part.begin, part.count, mine.inputs[s % 2].data());
      }
      if (s >= 2) {
        const Part part = part_of(c, s - 2, 1 - c.rank);
        std::copy_n(theirs.sums[s % 2].data(), part.count, out + part.begin);
      }
      if (s >= 1 && s - 1 < tiles) {
        const Part part = part_of(c, s - 1, c.rank);
        const float *const a = in + part.begin, *const b = theirs.inputs[(s - 1) % 2].data();
        float *const sum = out + part.begin, *const shown = mine.sums[(s - 1) % 2].data();
        for (std::size_t i = 0; i < part.count; ++i) shown[i] = sum[i] = a[i] + b[i];
      }
      meet(mine, theirs);
    }
  }

 private:
  struct Part {
    std::size_t begin, count;
  };
  /// The half of a tile that `rank` adds up.
  Part part_of(const Case& c, std::size_t tile, int rank) const {
    const std::size_t begin = tile * tile_, count = std::min(tile_, c.count - begin);
    return rank == 0 ? Part{begin, count / 2} : Part{begin + count / 2, count - count / 2};
  }
  static void meet(Rooms& mine, Rooms& theirs) {
    const std::size_t now = mine.meetings.load(std::memory_order_relaxed) + 1;
    mine.meetings.store(now, std::memory_order_release);
    // Pairs with the store of the other thread: its rooms are as it left them.
    while (theirs.meetings.load(std::memory_order_acquire) < now) {
    }
  }

  Rooms* const rooms_;
  const std::size_t tile_;
};

void run(peers::Team& team, Rooms* rooms, int rank, const peers::Arguments& arguments) {
  peers::Member member(team, rank);
  for (const Case& c : arguments.cases(rank, team.size)) {
    double best_us = 0;
    for (const std::size_t tile : kTiles) {
      if (tile > c.count && tile != kTiles[0]) break;  // the same as the smaller one
      const auto make = [=](const Case& what, float* in, float* out) -> peers::Call {
        return {[=] { TwoShot(rooms, tile).run(what, in, out); }};
      };
      measure(member, "tiles of " + std::to_string(tile * sizeof(float)), c, arguments.limits, make,
              best_us);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const peers::Arguments arguments = peers::arguments(argc, argv, 1);
  const std::vector<int> cores = peers::cores();
  if (cores.size() < 2 || arguments.op != "all_reduce") {
    std::fprintf(stderr, "two_shot: all_reduce of 2 ranks, a core each\n");
    return 2;
  }
  peers::Team team(2);
  static Rooms rooms[2];
  peers::on_threads(2, cores, [&](int rank) { run(team, rooms, rank, arguments); });
}
