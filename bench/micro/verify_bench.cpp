// What verification costs: all_reduce of f32 by ranks in threads, in communicators that verify nothing, all,
// one in 16 and one in 64, in turns. With RANK in the environment each process is one rank: scripts/on-hosts.
//
//   verify_bench [RANKS] [ROUNDS] [BYTES]     of the largest call

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "anyccl/anyccl.hpp"
#include "must.hpp"
#include "ranks.hpp"
#include "turns.hpp"

namespace {

using anyccl::Communicator;

constexpr int kVerify[] = {0, 1, 16, 64};
constexpr std::size_t kBytes[] = {8, 4 << 10, 64 << 10, 1 << 20, 16 << 20};

int calls_of(std::size_t bytes) {
  return bytes <= 4096 ? 640 : bytes <= 65536 ? 192 : 64;  // multiples of all of them
}

void run(Communicator& world, int rounds, std::size_t most) {
  std::vector<Communicator> comms;
  for (const int verify : kVerify) {
    anyccl::CommunicatorConfig config;
    config.fields.verify = verify;
    comms.push_back(*world.split(0, anyccl::index(world.rank()), config));
  }
  for (const std::size_t bytes : kBytes) {
    if (bytes > most) break;
    std::vector<float> x(bytes / sizeof(float), 1.0F), y(x.size());
    std::vector<bench::Way> ways;
    for (Communicator& comm : comms)
      ways.push_back({"", [&] {
                        must(anycclAllReduce(x.data(), y.data(), x.size(), anycclFloat32, anycclSum,
                                             comm.handle(), nullptr),
                             comm.handle());
                      }});
    bench::take_turns(ways, rounds, calls_of(bytes));
    if (world.rank() != anyccl::Rank{0}) continue;
    std::printf("%9zu B", bytes);
    bench::print_times(ways);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  const std::size_t most = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : SIZE_MAX;
  std::vector<Communicator> world = bench::ranks_of_this_process(ranks);
  std::printf("%d ranks; microseconds of a call, median (quartiles): off, all, 1/16, 1/64\n",
              world[0].size());
  bench::run_ranks(world, [&](Communicator& comm) { run(comm, rounds, most); });
}
