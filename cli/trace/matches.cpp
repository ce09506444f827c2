#include "trace/matches.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace anyccl::cli {
namespace {

/// Whether all its messages can be told apart.
bool is_clear(const RankTrace& trace) {
  return trace.left_out == 0 &&
         std::none_of(trace.calls.begin(), trace.calls.end(),
                      [](const TracedCall& call) { return call.kind == "recv" && call.root < 0; });
}

}  // namespace

std::vector<CommonCall> common_calls_of(const std::vector<RankTrace>& traces) {
  std::map<std::pair<std::string_view, std::uint64_t>, CommonCall> found;
  for (std::size_t t = 0; t < traces.size(); ++t)
    for (std::size_t c = 0; c < traces[t].calls.size(); ++c) {
      const TracedCall& call = traces[t].calls[c];
      if (call.sequence == 0 || call.started_ns == 0) continue;
      CommonCall& common = found[{traces[t].communicator, call.sequence}];
      common.parts.push_back({t, c});
      common.is_complete = common.parts.size() == static_cast<std::size_t>(traces[t].size);
    }
  std::vector<CommonCall> common_calls;
  for (auto& [place, common] : found)
    if (common.parts.size() > 1) common_calls.push_back(std::move(common));
  return common_calls;
}

std::vector<Delivery> deliveries_of(const std::vector<RankTrace>& traces) {
  using Place = std::tuple<std::string_view, int, int, std::uint64_t>;  // from, to, tag
  std::map<Place, std::vector<Part>> sends, receives;
  for (std::size_t t = 0; t < traces.size(); ++t) {
    const RankTrace& trace = traces[t];
    if (!is_clear(trace)) continue;
    for (std::size_t c = 0; c < trace.calls.size(); ++c) {
      const TracedCall& call = trace.calls[c];
      if (call.kind == "send")
        sends[{trace.communicator, trace.rank, call.root, call.tag}].push_back({t, c});
      else if (call.kind == "recv")
        receives[{trace.communicator, call.root, trace.rank, call.tag}].push_back({t, c});
    }
  }
  std::vector<Delivery> deliveries;
  for (const auto& [place, sent] : sends)
    if (const auto received = receives.find(place); received != receives.end())
      for (std::size_t i = 0; i < std::min(sent.size(), received->second.size()); ++i)
        if (call_of(traces, sent[i]).started_ns != 0 &&
            call_of(traces, received->second[i]).started_ns != 0)
          deliveries.push_back({sent[i], received->second[i]});
  return deliveries;
}

Part last_of(const std::vector<RankTrace>& traces, const CommonCall& common) {
  return *std::max_element(common.parts.begin(), common.parts.end(), [&](Part a, Part b) {
    return call_of(traces, a).started_ns < call_of(traces, b).started_ns;
  });
}

}  // namespace anyccl::cli
