#include "explore/recorded.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "explore/packed.hpp"
#include "trace/matches.hpp"

namespace anyccl::cli {

namespace {

using Json = nlohmann::ordered_json;

/// The traces of one communicator.
class Recording {
 public:
  /// `most`: calls that are kept.
  Recording(std::vector<RankTrace> traces, std::size_t most) : traces_(std::move(traces)) {
    find_operations();
    order_operations();
    keep_last(most);
  }

  Json json() {
    Json ranks = Json::array(), calls = Json::array();
    for (std::size_t t = 0; t < traces_.size(); ++t) {
      ranks.push_back({traces_[t].rank, traces_[t].host, traces_[t].pid});
      calls.push_back(calls_of(t));
    }
    std::uint64_t left_out = left_out_;
    for (const RankTrace& trace : traces_) left_out += trace.left_out;
    Json names = Json::array();
    for (const std::string& label : labels_.all()) names.push_back(Json::parse(label));
    return {{"title", traces_[0].title()}, {"size", traces_[0].size},
            {"leftOut", left_out},         {"ranks", std::move(ranks)},
            {"names", std::move(names)},   {"calls", std::move(calls)}};
  }

 private:
  /// Calls of several ranks that belong together.
  using Operation = std::vector<Part>;

  /// Finds collectives, messages with both ends, and calls that have begun and belong to none.
  void find_operations() {
    std::vector<std::vector<bool>> known;
    for (const RankTrace& trace : traces_) known.emplace_back(trace.calls.size());
    const auto add = [&](Operation operation) {
      for (const Part part : operation) known[part.trace][part.call] = true;
      operations_.push_back(std::move(operation));
    };
    for (const CommonCall& common : common_calls_of(traces_)) add(common.parts);
    for (const Delivery& delivery : deliveries_of(traces_)) add({delivery.send, delivery.recv});
    for (std::size_t t = 0; t < traces_.size(); ++t)
      for (std::size_t c = 0; c < traces_[t].calls.size(); ++c)
        if (!known[t][c] && traces_[t].calls[c].started_ns != 0) add({{t, c}});
  }

  std::int64_t begin_of(const Operation& operation) const {
    const auto first = std::ranges::min_element(
        operation, {}, [&](Part part) { return call_of(traces_, part).started_ns; });
    return call_of(traces_, *first).started_ns;
  }

  void order_operations() {
    std::ranges::stable_sort(operations_, {},
                             [&](const Operation& operation) { return begin_of(operation); });
  }

  void keep_last(std::size_t most) {
    std::size_t first = operations_.size(), calls = 0;
    while (first > 0 && calls + operations_[first - 1].size() <= most)
      calls += operations_[--first].size();
    for (std::size_t i = 0; i < first; ++i) left_out_ += operations_[i].size();
    operations_.erase(operations_.begin(),
                      operations_.begin() + static_cast<std::ptrdiff_t>(first));
    if (!operations_.empty()) start_ns_ = begin_of(operations_[0]);
  }

  /// Packs calls in the order of their begins: the operation of each, its name, when it begins
  /// after the one before it, and how many ns it lasts.
  std::string calls_of(std::size_t trace) {
    std::vector<std::pair<std::size_t, const TracedCall*>> calls;
    for (std::size_t o = 0; o < operations_.size(); ++o)
      for (const Part part : operations_[o])
        if (part.trace == trace) calls.emplace_back(o, &call_of(traces_, part));
    std::ranges::stable_sort(calls, {}, [](const auto& call) { return call.second->started_ns; });
    PackedNumbers to;
    std::int64_t last = start_ns_;
    for (const auto& [operation, call] : calls) {
      const std::int64_t end = call->ended_ns != 0 ? call->ended_ns : traces_[trace].time_ns;
      to.add(operation).add(labels_.number_of(label_of(*call)));
      to.add(static_cast<std::uint64_t>(call->started_ns - last));
      to.add(static_cast<std::uint64_t>(std::max<std::int64_t>(0, end - call->started_ns)));
      last = call->started_ns;
    }
    return to.text();
  }

  /// Traces may be of any program: a word that is no text is none.
  static std::string text_at(const Json& details, const char* key) {
    const auto found = details.find(key);
    return found != details.end() && found->is_string() ? found->get<std::string>() : "";
  }

  /// The label of a call on the page, as JSON text. Calls with equal labels share one.
  static std::string label_of(const TracedCall& call) {
    const Json details = Json::parse(call.details);
    const int root = call.sequence == 0 ? -1 : call.root;
    return Json{call.kind, call.bytes, text_at(details, "algorithm"), text_at(details, "protocol"),
                root}
        .dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  const std::vector<RankTrace> traces_;
  std::vector<Operation> operations_;
  std::int64_t start_ns_ = 0;
  std::uint64_t left_out_ = 0;
  Pool labels_;
};

/// Puts neighbouring traces of one communicator together; those of one that stand apart stay apart.
std::vector<std::vector<RankTrace>> by_communicator(std::vector<RankTrace> traces) {
  std::vector<std::vector<RankTrace>> all;
  for (RankTrace& trace : traces) {
    if (all.empty() || all.back()[0].communicator != trace.communicator) all.emplace_back();
    all.back().push_back(std::move(trace));
  }
  return all;
}

}  // namespace

Json recorded_json(std::vector<RankTrace> traces) {
  Json all = Json::array();
  std::vector<std::vector<RankTrace>> groups = by_communicator(std::move(traces));
  for (std::vector<RankTrace>& group : groups)
    all.push_back(Recording(std::move(group), kMostRecorded / groups.size()).json());
  return all;
}

}  // namespace anyccl::cli
