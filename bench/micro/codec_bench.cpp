// Speed of block codecs, per instruction set, codec and step, in G elements/s: the median of rounds, and the middle
// half of them. A compiler that makes no vectors of a loop shows here, at a tenth of it.
// codec_bench [ELEMENTS [ROUNDS]]
// codec_bench errors: of sums of n vectors as a coded AllReduce makes them, the root of the mean square, as a part of that of
// the exact sum.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "platform/reduce/codec.hpp"
#include "platform/reduce/isa.hpp"

namespace {

using namespace anyccl;
using Clock = std::chrono::steady_clock;

class Bench {
 public:
  Bench(std::size_t elements, int rounds) : elements_(elements), rounds_(rounds), x_(elements) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& one : x_) one = normal(random);
    sixteen_.resize(elements);
  }

  void measure(const Isa& isa, Codec codec) {
    const CodecKernels& kernels = *isa.kernels->codecs;
    std::vector<std::vector<std::byte>> payloads(8);
    std::vector<const std::byte*> at;
    for (auto& payload : payloads) {
      payload.resize(payload_bytes(codec, elements_));
      encode(kernels, codec, {x_.data(), elements_}, payload.data());
      at.push_back(payload.data());
    }
    const CodecVector f32{x_.data(), elements_}, bf16{sixteen_.data(), elements_, DType::bf16};
    std::byte* const out = payloads[7].data();
    const auto name = std::string(isa.name) + " " + std::string(info_of(codec).name);
    decode(kernels, codec, std::span(at).first(1), bf16);
    print(name, "encode f32", [&] { encode(kernels, codec, f32, out); });
    print(name, "encode bf16", [&] { encode(kernels, codec, bf16, out); });
    print(name, "sum 2, encode",
          [&] { recode(kernels, codec, std::span(at).first(2), elements_, out); });
    print(name, "sum 8, encode", [&] { recode(kernels, codec, at, elements_, out); });
    print(name, "decode f32", [&] { decode(kernels, codec, std::span(at).first(1), f32); });
    print(name, "decode bf16", [&] { decode(kernels, codec, std::span(at).first(1), bf16); });
  }

 private:
  void print(const std::string& name, const char* step, const std::function<void()>& run) const {
    std::vector<double> speeds;
    for (int round = 0; round < rounds_; ++round) {
      const Clock::time_point start = Clock::now();
      run();
      speeds.push_back(static_cast<double>(elements_) /
                       std::chrono::duration<double, std::nano>(Clock::now() - start).count());
    }
    std::sort(speeds.begin(), speeds.end());
    std::printf("%-22s %-14s %6.2f  (%.2f to %.2f)\n", name.c_str(), step,
                speeds[speeds.size() / 2], speeds[speeds.size() / 4],
                speeds[3 * speeds.size() / 4]);
  }

  std::size_t elements_;
  int rounds_;
  std::vector<float> x_;
  std::vector<std::uint16_t> sixteen_;
};

/// Of `n` vectors with elements of this distribution.
template <typename Distribution>
double error_of(const CodecKernels& kernels, Codec codec, std::size_t n,
                Distribution distribution) {
  constexpr std::size_t kElements = std::size_t{1} << 18;
  std::mt19937 random(1);
  std::vector<double> exact(kElements);
  std::vector<std::vector<std::byte>> payloads(n);
  std::vector<const std::byte*> at;
  std::vector<float> x(kElements);
  for (auto& payload : payloads) {
    for (std::size_t i = 0; i < kElements; ++i) {
      x[i] = static_cast<float>(distribution(random));
      exact[i] += static_cast<double>(x[i]);
    }
    payload.resize(payload_bytes(codec, kElements));
    encode(kernels, codec, {x.data(), kElements}, payload.data());
    at.push_back(payload.data());
  }
  if (n > 2) {
    recode(kernels, codec, at, kElements, payloads[0].data());
    at.resize(1);
  }
  decode(kernels, codec, at, {x.data(), kElements});
  double error = 0, size = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    const double off = static_cast<double>(x[i]) - exact[i];
    error += off * off;
    size += exact[i] * exact[i];
  }
  return std::sqrt(error / size);
}

void print_errors(const CodecKernels& kernels) {
  std::printf("%-12s %-12s %8s %8s %8s %8s\n", "codec", "elements", "n = 2", "4", "8", "16");
  for (int number = 0; number < static_cast<int>(kCodecs); ++number) {
    const auto codec = static_cast<Codec>(number);
    for (const bool is_normal : {true, false}) {
      std::printf("%-12s %-12s", info_of(codec).name.data(), is_normal ? "normal" : "Student's t3");
      for (const std::size_t n : {2U, 4U, 8U, 16U})
        std::printf(" %8.5f", is_normal
                                  ? error_of(kernels, codec, n, std::normal_distribution<>())
                                  : error_of(kernels, codec, n, std::student_t_distribution<>(3)));
      std::printf("\n");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "errors") {
    const auto kernels = best_kernels();
    if (!kernels.ok()) return 1;
    print_errors(*(*kernels)->codecs);
    return 0;
  }
  const std::size_t elements =
      argc > 1 ? std::strtoull(argv[1], nullptr, 10) : std::size_t{1} << 18;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 101;
  std::printf("%zu elements; G elements/s\n", elements);
  Bench bench(elements, rounds);
  for (const Isa& isa : instruction_sets())
    for (int codec = 0; isa.supported && codec < static_cast<int>(kCodecs); ++codec)
      bench.measure(isa, static_cast<Codec>(codec));
}
