// What the measuring programs of the peers share: one timing rule, the one of `anyccl perf`.
//
// Every rank times each call with CLOCK_MONOTONIC, back to back, without a barrier between calls.
// The time of a call is the maximum over the ranks, and a row gives the median over the calls.
// Between the timed calls every rank rewrites its input and reads its output, as a program that
// uses them does: otherwise the inputs would stay clean and shared in all caches, which flatters a
// library that reads its peer's buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace peers {

/// What measuring needs from the library that is measured.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  /// The value that rank 0 gave, on all ranks.
  virtual int agree(int value) = 0;
  /// Element by element the maximum over all ranks, on all ranks.
  virtual void maximum(std::vector<double>& values) = 0;
};

/// One way to add up a vector over all ranks, ready to be called many times on the same buffers.
struct AllReduce {
  std::function<void()> call;
  bool in_place;  // the result is in the input buffer
};
using MakeAllReduce = std::function<AllReduce(float* in, float* out, std::size_t count)>;

struct Limits {
  int calls;         // so many timed calls ...
  double budget_us;  // ... unless they would take longer than this, but at least kFewestCalls
};
constexpr int kFewestCalls = 5;

inline double now_us() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

/// Small whole numbers, so that their sums are exact in any order.
inline float input_at(int rank, std::size_t i) {
  return static_cast<float>(rank + 1) + static_cast<float>(i % 13);
}

inline bool is_sum(const float* result, std::size_t count, int ranks) {
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += input_at(r, i);
    if (result[i] != sum) return false;
  }
  return true;
}

/// Writes every cache line of the input and reads every one of the output.
inline void touch(std::vector<float>& in, const std::vector<float>& out) {
  volatile float* written = in.data();
  const volatile float* read = out.data();
  for (std::size_t i = 0; i < in.size(); i += 16) {
    (void)read[i];
    written[i] = 0;
  }
}

/// How many calls to time: doubles the number of untimed calls until they take a tenth of the
/// budget.
inline int calls_for(Group& group, const AllReduce& op, const Limits& limits) {
  for (int warm_up = 1;; warm_up *= 2) {
    group.barrier();
    const double start = now_us();
    for (int i = 0; i < warm_up; ++i) op.call();
    const double each_us = std::max(0.01, (now_us() - start) / warm_up);
    const bool enough = each_us * warm_up >= limits.budget_us / 10 || warm_up >= limits.calls;
    const double calls = std::clamp<double>(limits.budget_us / each_us, kFewestCalls, limits.calls);
    const int decided = group.agree(enough ? static_cast<int>(calls) : 0);
    if (decided > 0) return decided;
  }
}

/// Measures one size and prints, on rank 0: bytes, median in us, timed calls, ranks with a wrong
/// result, name.
inline void measure(Group& group, const std::string& name, std::size_t bytes, const Limits& limits,
                    const MakeAllReduce& make) {
  const std::size_t count = bytes / sizeof(float);
  std::vector<float> in(count), out(count, -1.0F);
  for (std::size_t i = 0; i < count; ++i) in[i] = input_at(group.rank(), i);
  const AllReduce op = make(in.data(), out.data(), count);
  op.call();
  const bool right = is_sum(op.in_place ? in.data() : out.data(), count, group.size());
  std::fill(in.begin(), in.end(), 0.0F);  // what works in place would grow without bound

  std::vector<double> us(static_cast<std::size_t>(calls_for(group, op, limits)));
  group.barrier();
  for (double& time : us) {
    touch(in, op.in_place ? in : out);
    const double start = now_us();
    op.call();
    time = now_us() - start;
  }
  us.push_back(right ? 0 : 1);
  group.maximum(us);
  const bool wrong = us.back() != 0;
  us.pop_back();
  std::sort(us.begin(), us.end());
  if (group.rank() != 0) return;
  std::printf("%zu\t%.4f\t%zu\t%d\t%s\n", bytes, us[us.size() / 2], us.size(), wrong ? 1 : 0,
              name.c_str());
  std::fflush(stdout);
}

/// CALLS BUDGET_MS BYTES... from the command line, from argv[first] on.
struct Arguments {
  Limits limits;
  std::vector<std::size_t> sizes;
};
inline Arguments arguments(int argc, char** argv, int first) {
  if (argc < first + 3) {
    std::fprintf(stderr, "usage: %s ... CALLS BUDGET_MS BYTES...\n", argv[0]);
    std::exit(2);
  }
  Arguments result{{std::atoi(argv[first]), std::atof(argv[first + 1]) * 1e3}, {}};
  for (int i = first + 2; i < argc; ++i)
    result.sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  return result;
}

}  // namespace peers
