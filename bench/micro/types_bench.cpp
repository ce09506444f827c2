// What types of results and sums cost: ReduceScatter and AllReduce by ranks in threads, of bf16 as they are, into
// f32, added up in f32 and rounded once, and of f32, in turns. With RANK in the environment each process is one
// rank: scripts/on-hosts.
//
//   types_bench [RANKS] [ROUNDS] [ELEMENTS]     of the largest call

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

struct Types {
  const char* name;
  anycclDataType_t input;
  int output, accumulate;
};
constexpr int kUnset = ANYCCL_CONFIG_UNDEF_INT;
constexpr Types kTypes[] = {
    {"bf16", anycclBfloat16, kUnset, kUnset},
    {"bf16 to f32", anycclBfloat16, anycclFloat32, kUnset},
    {"bf16 by f32", anycclBfloat16, kUnset, anycclFloat32},
    {"f32", anycclFloat32, kUnset, kUnset},
};
constexpr anycclCollective_t kKinds[] = {anycclCollReduceScatter, anycclCollAllReduce};
constexpr std::size_t kElements[] = {1 << 10, 32 << 10, 512 << 10, 8 << 20};

void run(Communicator& comm, int rounds, std::size_t most) {
  for (const anycclCollective_t kind : kKinds)
    for (const std::size_t elements : kElements) {
      if (elements > most) break;
      const bool scatters = kind == anycclCollReduceScatter;
      std::vector<float> x(elements), y(elements);
      std::vector<bench::Way> ways;
      for (const Types& types : kTypes)
        ways.push_back({types.name, [&, scatters, elements, kind] {
                          anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
                          config.outputType = types.output;
                          config.accumulateType = types.accumulate;
                          anycclCall_t call{};
                          call.size = sizeof call;
                          call.collective = kind;
                          call.sendbuff = x.data();
                          call.recvbuff = y.data();
                          call.count = scatters ? elements / static_cast<std::size_t>(comm.size())
                                                : elements;
                          call.datatype = types.input;
                          call.op = anycclSum;
                          call.config = &config;
                          must(anycclRun(&call, comm.handle()), comm.handle());
                        }});
      bench::take_turns(ways, rounds, elements <= 1 << 15 ? 200 : elements <= 1 << 20 ? 20 : 4);
      if (comm.rank() != anyccl::Rank{0}) continue;
      std::printf("%-14s %8zu", scatters ? "reduce_scatter" : "all_reduce", elements);
      bench::print_times(ways);
    }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  const std::size_t most = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : SIZE_MAX;
  std::vector<Communicator> world = bench::ranks_of_this_process(ranks);
  std::printf("%d ranks, elements of a rank's input; us of a call, median (quartiles):",
              world[0].size());
  for (const Types& types : kTypes) std::printf("  %s", types.name);
  std::printf("\n");
  bench::run_ranks(world, [&](Communicator& comm) { run(comm, rounds, most); });
}
