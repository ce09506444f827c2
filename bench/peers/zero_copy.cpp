// The bound of an AllReduce that copies nothing: ranks are threads, each bound to a core, that sum
// the inputs in place, between two barriers of one counter. Each writes a part to all outputs
// (push), or everything to its own (pull).
//   zero_copy RANKS all_reduce CALLS BUDGET_MS OFFSET BYTES...
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "threads.hpp"

namespace {

using peers::Case;
using peers::Team;

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

void run(Team& team, int rank, const peers::Arguments& arguments) {
  peers::Member member(team, rank);
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
  peers::on_threads(ranks, cores, [&](int rank) { run(team, rank, arguments); });
}
