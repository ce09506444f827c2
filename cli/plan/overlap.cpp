#include "plan/overlap.hpp"

namespace anyccl::cli {

std::vector<OverlapSpan> overlap_trace(const LayerTimes& times, int group) {
  std::vector<OverlapSpan> spans;
  double call_end_s = 0;
  for (int first = 0; first < times.layers; first += group) {
    const int layers = std::min(group, times.layers - first);
    for (int layer = first; layer < first + layers; ++layer)
      spans.push_back({layer, 1, false, layer * times.compute_s, (layer + 1) * times.compute_s});
    const double begin_s = std::max(call_end_s, (first + layers) * times.compute_s);
    call_end_s = begin_s + times.latency_s + layers * (times.communication_s - times.latency_s);
    spans.push_back({first, layers, true, begin_s, call_end_s});
  }
  return spans;
}

double overlapped_s(const LayerTimes& times, int group) {
  return overlap_trace(times, group).back().end_s;
}

}  // namespace anyccl::cli
