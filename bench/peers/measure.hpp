// Shared by the measuring programs of the peers: one timing rule, the one of `anyccl perf`.
//
// Every rank times each call with CLOCK_MONOTONIC, back to back, without a barrier between calls,
// except for operations with a root, which would run ahead. The time of a call is the maximum over
// the ranks, and a row gives the median over the calls. Between the timed calls every rank rewrites
// its input and reads its output, as a program that uses them does: otherwise the inputs would stay
// clean and shared in all caches, which flatters a library that reads its peer's buffer.
#pragma once

#include <sys/mman.h>

#include <ctime>
#include <functional>
#include <vector>

#include "operations.hpp"

namespace peers {

/// The services that measuring needs from the measured library.
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

/// Floats in private 4 KiB pages, all of them present, from `offset` bytes of the first page on.
class Buffer {
 public:
  Buffer(std::size_t count, float value, std::size_t offset = 0)
      : count_(count), bytes_((count + 1) * sizeof(float) + offset) {
    start_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start_ == MAP_FAILED) std::perror("mmap"), std::exit(1);
    ::madvise(start_, bytes_, MADV_NOHUGEPAGE);
    data_ = reinterpret_cast<float*>(static_cast<char*>(start_) + offset);
    fill(value);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::munmap(start_, bytes_); }

  float* data() const { return data_; }
  std::size_t size() const { return count_; }
  void fill(float value) { std::fill(data_, data_ + count_, value); }
  /// Writes every cache line.
  void rewrite() {
    volatile float* const p = data_;
    for (std::size_t i = 0; i < count_; i += 16) p[i] = 0;
  }
  /// Reads every cache line.
  void read() const {
    const volatile float* const p = data_;
    for (std::size_t i = 0; i < count_; i += 16) (void)p[i];
  }

 private:
  std::size_t count_, bytes_;
  void* start_;
  float* data_;
};

/// One way to do an operation, ready to be called many times on the same buffers.
struct Call {
  std::function<void()> run;     // null: the library does not have the operation
  bool result_in_input = false;  // else in the output
};
using MakeCall = std::function<Call(const Case& what, float* in, float* out)>;

struct Limits {
  int calls;           // the number of timed calls ...
  double budget_us;    // ... unless they would take longer than this, but at least kFewestCalls ...
  std::size_t offset;  // of both buffers, in bytes from the beginning of a page
};
constexpr int kFewestCalls = 5;
constexpr double kLongest_us = 2e6;    // ... and of calls that are so slow, at least one
constexpr double kHopeless_us = 5e4;   // a way that needs more than this is left out if it is ...
constexpr double kHopelessFactor = 5;  // ... this many times as slow as the best

inline double now_us() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

inline bool is_right(const Case& c, const float* result) {
  for (std::size_t i = 0; i < c.output_count(); ++i)
    if (result[i] != c.output_at(i)) return false;
  return true;
}

/// The number of calls to time: doubles the number of untimed calls until they take a tenth of
/// the budget.
inline int calls_for(Group& group, const Case& c, const Call& call, const Limits& limits) {
  for (int warm_up = 1;; warm_up *= 2) {
    group.barrier();
    const double start = now_us();
    for (int i = 0; i < warm_up; ++i) {
      if (c.has_root()) group.barrier();
      call.run();
    }
    const double each_us = std::max(0.01, (now_us() - start) / warm_up);
    const bool enough = each_us * warm_up >= limits.budget_us / 10 || warm_up >= limits.calls;
    const double fewest = std::clamp<double>(kLongest_us / each_us, 1, kFewestCalls);
    const double calls = std::clamp<double>(limits.budget_us / each_us, fewest, limits.calls);
    const int decided = group.agree(enough ? static_cast<int>(calls) : 0);
    if (decided > 0) return decided;
  }
}

/// Microseconds of each timed call on this rank.
inline std::vector<double> timed_calls(Group& group, const Case& c, const Call& call, Buffer& in,
                                       const Buffer& result, int calls) {
  std::vector<double> us(static_cast<std::size_t>(calls));
  group.barrier();
  for (double& time : us) {
    result.read();
    in.rewrite();
    if (c.has_root()) group.barrier();
    const double start = now_us();
    call.run();
    time = now_us() - start;
  }
  return us;
}

inline double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// Measures one case and prints, on rank 0: bytes, median in us, timed calls, whether a rank had a
/// wrong result, name. `best_us`: the time of the fastest way, on rank 0; 0: this is the first.
inline void measure(Group& group, const std::string& name, const Case& c, const Limits& limits,
                    const MakeCall& make, double& best_us) {
  Buffer in(c.input_count(), 0, limits.offset), out(c.output_count(), -1, limits.offset);
  for (std::size_t i = 0; i < in.size(); ++i) in.data()[i] = input_at(c.rank, i);
  const Call call = make(c, in.data(), out.data());
  if (!call.run) return;
  group.barrier();
  const double start = now_us();
  call.run();
  const double first_us = now_us() - start;
  const Buffer& result = call.result_in_input ? in : out;
  const bool right = is_right(c, result.data());
  in.fill(0);  // in-place results would grow without bound

  const bool hopeless = first_us > std::max(kHopeless_us, kHopelessFactor * best_us);
  if (group.agree(best_us > 0 && hopeless ? 1 : 0) != 0) return;
  const int calls = calls_for(group, c, call, limits);
  std::vector<double> us = timed_calls(group, c, call, in, result, calls);
  us.push_back(right ? 0 : 1);
  group.maximum(us);
  const bool wrong = us.back() != 0;
  us.pop_back();
  if (c.rank != 0) return;
  const double median = median_of(std::move(us));
  best_us = best_us > 0 ? std::min(best_us, median) : median;
  std::printf("%zu\t%.4f\t%d\t%d\t%s\n", c.bytes(), median, calls, wrong ? 1 : 0, name.c_str());
  std::fflush(stdout);
}
/// As above, with only one way.
inline void measure(Group& group, const Case& c, const Limits& limits, const MakeCall& make) {
  double best_us = 0;
  measure(group, "default", c, limits, make, best_us);
}

/// OPERATION CALLS BUDGET_MS OFFSET BYTES... from the command line, from argv[first] on.
struct Arguments {
  std::string op;
  Limits limits;
  std::vector<std::size_t> sizes;

  std::vector<Case> cases(int rank, int ranks) const {
    std::vector<Case> result;
    for (const std::size_t bytes : sizes) {
      Case c = make_case(op, rank, ranks, bytes);
      // Sizes below the operation's smallest all become the smallest.
      if (result.empty() || result.back().count != c.count) result.push_back(std::move(c));
    }
    return result;
  }
};
inline Arguments arguments(int argc, char** argv, int first) {
  if (argc < first + 5) {
    std::fprintf(stderr, "usage: %s ... OPERATION CALLS BUDGET_MS OFFSET BYTES...\n", argv[0]);
    std::exit(2);
  }
  const auto bytes = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  const Limits limits{std::atoi(argv[first + 1]), std::atof(argv[first + 2]) * 1e3,
                      bytes(first + 3)};
  Arguments result{argv[first], limits, {}};
  for (int i = first + 4; i < argc; ++i) result.sizes.push_back(bytes(i));
  return result;
}

}  // namespace peers
