#pragma once

#include <algorithm>
#include <vector>

namespace anyccl::cli {

/// What each layer of a model takes, as measured: computing, and then communication of its result.
struct LayerTimes {
  int layers = 1;
  double compute_s = 0, communication_s = 0;
  double latency_s = 0;  ///< The part of the communication that each call has, however small.

  double serial_s() const { return layers * (compute_s + communication_s); }
  double compute_only_s() const { return layers * compute_s; }
  /// What no overlap can beat.
  double bound_s() const { return layers * std::max(compute_s, communication_s); }
  double share() const { return communication_s / (compute_s + communication_s); }
};

/// One call for all layers of a group, or the computing of one layer, on its stream.
struct OverlapSpan {
  int first_layer = 0, layers = 1;
  bool communication = false;
  double begin_s = 0, end_s = 0;
};

/// Two streams: layers are computed one after the other, and each `group` of them is followed by
/// one call beside the next ones. The last call shows, as nothing is left to compute.
std::vector<OverlapSpan> overlap_trace(const LayerTimes& times, int group);

/// When the last call of that ends.
double overlapped_s(const LayerTimes& times, int group);

}  // namespace anyccl::cli
