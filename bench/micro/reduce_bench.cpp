// Time of one reduction, per instruction set, kernel, number of sources and bytes per source.
// reduce_bench --benchmark_filter='x86-64-v3/f32 sum'

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "platform/reduce/isa.hpp"

namespace {

using namespace anyccl;

void reduce(benchmark::State& state, ReduceFn kernel, std::size_t element) {
  const auto sources = static_cast<std::size_t>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  constexpr std::size_t kLine = 64;
  struct alignas(kLine) Line {
    std::byte bytes[kLine];
  };
  std::vector<std::vector<Line>> buffers(sources + 1,
                                         std::vector<Line>((bytes + kLine - 1) / kLine));
  std::vector<const void*> src;
  for (std::size_t k = 0; k < sources; ++k) src.push_back(buffers[k].data());
  for (auto _ : state) {
    kernel(buffers[sources].data(), nullptr, src.data(), sources, bytes / element);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * state.range(1));
}

std::string name(const Isa& isa, DType dtype, ReduceOp op) {
  return fmt::format("{}/{} {}", isa.name, name_of(dtype), name_of(op));
}

}  // namespace

int main(int argc, char** argv) {
  for (const Isa& isa : instruction_sets()) {
    if (!isa.supported) continue;
    for (std::size_t type = 0; type < kDTypes; ++type)
      for (std::size_t op = 0; op < kReduceOps; ++op)
        if (const ReduceFn kernel = isa.kernels->of[type].reduce[op]; kernel != nullptr)
          benchmark::RegisterBenchmark(
              name(isa, static_cast<DType>(type), static_cast<ReduceOp>(op)).c_str(), reduce,
              kernel, bytes_of(static_cast<DType>(type)))
              ->ArgNames({"sources", "bytes"})
              ->ArgsProduct({{2, 3, 4, 6, 8, 16}, {8, 64, 512, 4096, 32768, 262144, 1048576}});
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
