// The bound of an AllReduce that copies nothing: ranks are threads, each bound to a core, that sum
// the inputs in place, between two barriers of one counter. Each writes a part to all outputs
// (push), or everything to its own (pull).
//   zero_copy RANKS all_reduce CALLS BUDGET_MS OFFSET BYTES...
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <atomic>
#include <mutex>
#include <thread>

#include "cores.hpp"
#include "measure.hpp"

namespace {

using peers::Case;

/// The state shared by the threads.
struct Team {
  explicit Team(int n) : size(n), inputs(n), outputs(n) {}
  const int size;
  alignas(128) std::atomic<int> arrived{0};
  alignas(128) std::atomic<int> rounds{0};
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  int agreed = 0;
  std::mutex mutex;
  std::vector<double> maxima;

  void barrier() {
    const int round = rounds.load(std::memory_order_relaxed);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
      arrived.store(0, std::memory_order_relaxed);
      // Pairs with the load below: all threads see all earlier writes.
      rounds.store(round + 1, std::memory_order_release);
    }
    while (rounds.load(std::memory_order_acquire) == round) {
    }
  }
};

class Member final : public peers::Group {
 public:
  Member(Team& team, int rank) : team_(team), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return team_.size; }
  void barrier() override { team_.barrier(); }
  int agree(int value) override {
    if (rank_ == 0) team_.agreed = value;
    barrier();
    const int agreed = team_.agreed;
    barrier();
    return agreed;
  }
  void maximum(std::vector<double>& values) override {
    if (rank_ == 0) team_.maxima = values;
    barrier();
    {
      const std::lock_guard<std::mutex> lock(team_.mutex);
      for (std::size_t i = 0; i < values.size(); ++i)
        team_.maxima[i] = std::max(team_.maxima[i], values[i]);
    }
    barrier();
    values = team_.maxima;
    barrier();
  }

 private:
  Team& team_;
  int rank_;
};

constexpr std::size_t kLine = 16, kBlock = 1024;  // floats; a block stays in the nearest cache

template <bool kPastCaches>
void store(float* to, const float* block, std::size_t count) {
#ifdef __SSE2__
  if constexpr (kPastCaches) {
    for (std::size_t i = 0; i < count; i += 4) _mm_stream_ps(to + i, _mm_load_ps(block + i));
    return;
  }
#endif
  std::copy(block, block + count, to);
}

/// Elements [first, last), which are whole lines, into each of `outputs`.
template <bool kPastCaches>
void sum(const std::vector<const float*>& inputs, const std::vector<float*>& outputs,
         std::size_t first, std::size_t last) {
  alignas(64) float block[kBlock];
  for (std::size_t at = first; at < last; at += kBlock) {
    const std::size_t count = std::min(kBlock, last - at);
    const float *const a = inputs[0] + at, *const b = inputs[1] + at;
    for (std::size_t i = 0; i < count; ++i) block[i] = a[i] + b[i];
    for (std::size_t r = 2; r < inputs.size(); ++r)
      for (std::size_t i = 0; i < count; ++i) block[i] += inputs[r][at + i];
    for (float* const output : outputs) store<kPastCaches>(output + at, block, count);
  }
#ifdef __SSE2__
  if constexpr (kPastCaches) _mm_sfence();
#endif
}

template <bool kPastCaches>
peers::MakeCall push(Team& team) {
  return [&team](const Case& c, float* in, float* out) -> peers::Call {
    team.inputs[c.rank] = in;
    team.outputs[c.rank] = out;
    const std::size_t ranks = team.size, rank = c.rank, lines = c.count / kLine;
    const std::size_t first = lines * rank / ranks * kLine;
    const std::size_t last = lines * (rank + 1) / ranks * kLine;
    if (c.count % kLine != 0) return {};
    return {[=, &team] {
      team.barrier();
      sum<kPastCaches>(team.inputs, team.outputs, first, last);
      team.barrier();
    }};
  };
}

template <bool kPastCaches>
peers::MakeCall pull(Team& team) {
  return [&team](const Case& c, float* in, float* out) -> peers::Call {
    team.inputs[c.rank] = in;
    if (c.count % kLine != 0) return {};
    return {[=, &team, outputs = std::vector<float*>{out}, count = c.count] {
      team.barrier();
      sum<kPastCaches>(team.inputs, outputs, 0, count);
      team.barrier();
    }};
  };
}

void run(Team& team, int rank, int core, const peers::Arguments& arguments) {
  peers::pin(core);
  Member member(team, rank);
  for (const Case& c : arguments.cases(rank, team.size)) {
    double best_us = 0;
    measure(member, "push", c, arguments.limits, push<false>(team), best_us);
    measure(member, "push past caches", c, arguments.limits, push<true>(team), best_us);
    measure(member, "pull", c, arguments.limits, pull<false>(team), best_us);
    measure(member, "pull past caches", c, arguments.limits, pull<true>(team), best_us);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  const peers::Arguments arguments = peers::arguments(argc, argv, 2);
  const std::vector<int> cores = peers::cores();
  if (ranks < 2 || ranks > static_cast<int>(cores.size()) || arguments.op != "all_reduce") {
    std::fprintf(stderr, "zero_copy: all_reduce of 2 to %zu ranks, a core each\n", cores.size());
    return 2;
  }
  Team team(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { run(team, r, cores[r], arguments); });
  for (std::thread& thread : threads) thread.join();
}
