// What verification costs: all_reduce of f32 by ranks in threads, in communicators that verify nothing, all
// and one in 16, in turns.
//
//   verify_bench [RANKS] [ROUNDS]

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "anyccl/anyccl.hpp"

namespace {

constexpr std::array<int, 3> kVerify{0, 1, 16};
constexpr std::size_t kBytes[] = {8, 4 << 10, 64 << 10, 1 << 20, 16 << 20};

/// Microseconds of a call: quartiles over rounds.
using Times = std::vector<double>;
double quantile(Times times, double part) {
  std::sort(times.begin(), times.end());
  return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
}

double microseconds(const anyccl::Communicator& comm, std::vector<float>& x, std::vector<float>& y,
                    std::size_t bytes) {
  const int calls = bytes <= 4096 ? 320 : bytes <= 65536 ? 160 : bytes <= 1 << 20 ? 32 : 16;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i)
    if (anycclAllReduce(x.data(), y.data(), bytes / sizeof(float), anycclFloat32, anycclSum,
                        comm.handle(), nullptr) != anycclSuccess) {
      std::fprintf(stderr, "%s\n", anycclGetLastError(comm.handle()));
      std::exit(1);
    }
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  return time.count() / calls;
}

void run(anyccl::Communicator& world, int rounds) {
  std::vector<anyccl::Communicator> comms;
  for (const int verify : kVerify) {
    anyccl::CommunicatorConfig config;
    config.fields.verify = verify;
    comms.push_back(*world.split(0, anyccl::index(world.rank()), config));
  }
  for (const std::size_t bytes : kBytes) {
    std::vector<float> x(bytes / sizeof(float), 1.0F), y(x.size());
    std::array<Times, kVerify.size()> times;
    for (int round = -1; round < rounds; ++round)
      for (std::size_t i = 0; i < comms.size(); ++i) {
        const double time = microseconds(comms[i], x, y, bytes);
        if (round >= 0) times[i].push_back(time);
      }
    if (world.rank() != anyccl::Rank{0}) continue;
    std::printf("%9zu B", bytes);
    for (const Times& t : times)
      std::printf("   %9.2f (%.2f to %.2f)", quantile(t, 0.5), quantile(t, 0.25),
                  quantile(t, 0.75));
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  auto world = anyccl::Communicator::init_all(ranks);
  if (!world.ok()) return 1;
  std::printf("%d ranks; microseconds of a call, median (quartiles): off, all, 1/16\n", ranks);
  std::vector<std::thread> threads;
  for (anyccl::Communicator& comm : *world)
    threads.emplace_back([&comm, rounds] { run(comm, rounds); });
  for (std::thread& thread : threads) thread.join();
}
