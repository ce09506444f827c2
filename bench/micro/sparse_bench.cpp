// Time of sparse vectors per element of the vector, per instruction set and step, in ns: the median of rounds, and
// the middle half of them.
// sparse_bench [ELEMENTS [PER_MILLE [ROUNDS]]]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "platform/reduce/isa.hpp"
#include "platform/reduce/sparse.hpp"

namespace {

using namespace anyccl;
using Clock = std::chrono::steady_clock;

struct Times {
  double low, median, high;
};

/// `before` is not timed.
Times time_of(int rounds, std::size_t elements, const std::function<void()>& before,
              const std::function<void()>& step) {
  std::vector<double> ns;
  for (int round = 0; round < rounds; ++round) {
    before();
    const Clock::time_point start = Clock::now();
    step();
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
                 static_cast<double>(elements));
  }
  std::sort(ns.begin(), ns.end());
  return {ns[ns.size() / 4], ns[ns.size() / 2], ns[3 * ns.size() / 4]};
}

template <typename T>
T must(Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", std::string(result.status().message()).c_str());
  std::exit(1);
}

void measure(const Isa& isa, std::size_t elements, std::size_t keep, int rounds) {
  const SparseKernels& kernels = isa.kernels->sparse;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(elements), v, u(elements), sum(elements);
  for (float& one : x) one = normal(random);
  v = x;
  const auto restore = [&] { v = x; };
  const SparseVector vector{v.data(), elements}, into{sum.data(), elements};
  const auto print = [&](const char* step, const Times& ns) {
    std::printf("%-16s %-20s %6.3f  (%.3f to %.3f)\n", isa.name.data(), step, ns.median, ns.low,
                ns.high);
  };
  const auto nothing = [] {};
  anycclSparseCut_t cut{};
  print("momentum", time_of(rounds, elements, nothing, [&] {
          kernels.momentum(u.data(), sum.data(), x.data(), elements, 0.9F);
        }));
  print("top_k", time_of(rounds, elements, nothing,
                         [&] { cut = must(sparse_top_k(kernels, vector, keep)); }));
  print("threshold", time_of(rounds, elements, nothing,
                             [&] { cut = must(sparse_threshold(kernels, vector, keep)); }));
  for (const auto& [type, pack, add] : {std::tuple{DType::f32, "pack f32", "add f32"},
                                        std::tuple{DType::bf16, "pack bf16", "add bf16"},
                                        std::tuple{DType::f16, "pack f16", "add f16"}}) {
    std::vector<std::byte> payload(must(sparse_bound(elements, cut.entries, type)));
    print(pack, time_of(rounds, elements, restore, [&, type = type] {
            must(sparse_pack(kernels, vector, u.data(), cut, type, payload));
          }));
    print(add, time_of(rounds, elements, nothing, [&] {
            if (!sparse_add(kernels, payload, into).ok()) std::exit(1);
          }));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t elements =
      argc > 1 ? std::strtoull(argv[1], nullptr, 10) : std::size_t{4} << 20;
  const std::size_t per_mille = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 41;
  std::printf("%zu elements, %zu per mille of them; ns per element of the vector\n", elements,
              per_mille);
  for (const Isa& isa : instruction_sets())
    if (isa.supported) measure(isa, elements, elements * per_mille / 1000, rounds);
}
