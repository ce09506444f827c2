// Time and bytes of AllReduce with codecs between hosts, beside those without: one rank of it in each process.
// coded_bench [ELEMENTS [ROUNDS [INTERFACE]]]; scripts/on-hosts runs it on hosts with a rate.
// Variants take turns in each round, from a barrier on. Time: of rank 0, the median of rounds, and the middle
// half of them. Bytes: those that the interface of rank 0 has sent, with all headers and barriers.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "anyccl/anyccl.hpp"
#include "must.hpp"
#include "turns.hpp"

namespace {

using namespace anyccl;
using Clock = std::chrono::steady_clock;

double bytes_sent(const std::string& interface) {
  std::ifstream file("/sys/class/net/" + interface + "/statistics/tx_bytes");
  double bytes = 0;
  file >> bytes;
  return bytes;
}

struct Variant {
  std::string name;
  std::function<Status()> run;
  std::vector<double> ms;
  double bytes = 0;
};

void print(std::vector<Variant>& variants, std::size_t elements, int rounds) {
  const double bf16 = bench::quantile(variants[0].ms, 0.5);
  std::printf("%-22s %9s %21s %8s %14s\n", "", "ms", "(middle half)", "speed", "bytes/element");
  for (Variant& variant : variants) {
    const double median = bench::quantile(variant.ms, 0.5);
    std::printf("%-22s %9.2f (%8.2f to %8.2f) %7.2fx %14.3f\n", variant.name.c_str(), median,
                bench::quantile(variant.ms, 0.25), bench::quantile(variant.ms, 0.75), bf16 / median,
                variant.bytes / rounds / static_cast<double>(elements));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t elements =
      argc > 1 ? std::strtoull(argv[1], nullptr, 10) : std::size_t{4} << 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 11;
  const std::string interface = argc > 3 ? argv[3] : "eth0";
  auto joined = Communicator::from_env();
  must(joined.status());
  Communicator& comm = *joined;

  std::vector<float> x(elements), y(elements);
  std::vector<BFloat16> small(elements), sum(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    x[i] = std::sin(static_cast<float>(i % 10007) + static_cast<float>(index(comm.rank())));
    small[i].bits = static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, x[i]) >> 16);
  }
  std::vector<codec::AllReduce> kept;
  std::vector<Variant> variants;
  const auto add = [&](const std::string& name, std::function<Status()> run) {
    variants.push_back({name, std::move(run), {}, 0});
  };
  add("bf16, no codec", [&] { return wait(comm.all_reduce(small, sum, ReduceOp::sum)); });
  add("f32, no codec", [&] { return wait(comm.all_reduce(x, y, ReduceOp::sum)); });
  const char* const names[] = {"int8", "mxint8", "mxfp8_e4m3", "int4", "bf16"};
  kept.reserve(std::size(names));
  for (const char* name : names) {
    auto made = codec::AllReduce::create(comm, *codec::named(name));
    must(made.status());
    kept.push_back(*std::move(made));
    codec::AllReduce& coded = kept.back();
    add(std::string("bf16, ") + name, [&] { return coded.run(small, sum, ReduceOp::sum); });
    add(std::string("f32, ") + name, [&] { return coded.run(x, y, ReduceOp::sum); });
  }
  for (int round = -1; round < rounds; ++round)  // the first makes plans and memory
    for (Variant& variant : variants) {
      must(wait(comm.barrier()));
      const double before = bytes_sent(interface);
      const Clock::time_point start = Clock::now();
      must(variant.run());
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      must(wait(comm.barrier()));
      if (round < 0) continue;
      variant.ms.push_back(ms);
      variant.bytes += bytes_sent(interface) - before;
    }
  if (comm.rank() == Rank{0}) print(variants, elements, rounds);
  for (codec::AllReduce& coded : kept) must(coded.destroy());
}
