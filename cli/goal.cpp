#include "goal.hpp"

#include <cmath>
#include <map>

#include "base/error.hpp"
#include "framework/collective/routed_plan.hpp"

namespace anyccl::cli {
namespace {

/// The lines of one rank.
class GoalRank {
 public:
  GoalRank(const Schedule& schedule, std::size_t bytes, double bytes_per_ns)
      : schedule_(schedule),
        geometry_(Geometry::of_vector(schedule.contract, bytes, std::max<std::size_t>(bytes, 1))),
        bytes_per_ns_(bytes_per_ns) {}

  std::string text() {
    lines_ = fmt::format("rank {} {{\n", index(schedule_.rank));
    for (const Step& step : schedule_.steps) write_step(step);
    return lines_ + "}\n";
  }

 private:
  void write_step(const Step& step) {
    std::vector<int> ends;
    std::size_t read = 0;  // by this rank's own additions and copies
    for (std::size_t k = 0; k < step.peers.size(); ++k) {
      const Rank peer = step.peers[k];
      const bool combines = step.op == Op::recv_reduce || step.op == Op::reduce;
      const Slice& moved = step.op == Op::send ? step.src : step.dst;
      const std::size_t size = bytes_of(moved, combines ? 0 : k);
      if (combines || peer == schedule_.rank) read += step.op == Op::send ? 0 : size;
      if (peer == schedule_.rank) continue;
      ends.push_back(step.op == Op::send ? write_message("send", "to", peer, size, sent_[peer]++)
                                         : write_message("recv", "from", peer, size, got_[peer]++));
      for (const std::uint32_t before : step.after) requires_all(ends.back(), before);
    }
    if (read > 0) write_calculation(read, step, ends);
    if (ends.empty())  // a step without work takes no time: later steps wait for those before it
      for (const std::uint32_t before : step.after)
        ends.insert(ends.end(), ends_[before].begin(), ends_[before].end());
    ends_.push_back(std::move(ends));
  }

  /// After the messages of its step, or else after the steps before. `ends` becomes its label
  /// alone.
  void write_calculation(std::size_t read, const Step& step, std::vector<int>& ends) {
    const int label = ++labels_;
    lines_ += fmt::format("l{}: calc {}\n", label,
                          std::llround(static_cast<double>(read) / bytes_per_ns_));
    for (const int one : ends) lines_ += fmt::format("l{} requires l{}\n", label, one);
    if (ends.empty())
      for (const std::uint32_t before : step.after) requires_all(label, before);
    ends = {label};
  }

  int write_message(std::string_view verb, std::string_view way, Rank peer, std::size_t bytes,
                    int tag) {
    lines_ +=
        fmt::format("l{}: {} {}b {} {} tag {}\n", ++labels_, verb, bytes, way, index(peer), tag);
    return labels_;
  }

  void requires_all(int label, std::uint32_t step) {
    for (const int last : ends_[step]) lines_ += fmt::format("l{} requires l{}\n", label, last);
  }

  std::size_t bytes_of(const Slice& slice, std::size_t piece) const {
    std::size_t bytes = 0;
    const std::uint32_t first = slice.first + static_cast<std::uint32_t>(piece) * slice.stride;
    for (std::uint32_t c = first; c < first + slice.count; ++c)
      bytes += geometry_.bytes(0, schedule_.origin(slice.space, c));
    return bytes;
  }

  const Schedule& schedule_;
  const Geometry geometry_;
  const double bytes_per_ns_;
  std::string lines_;
  int labels_ = 0;
  std::vector<std::vector<int>> ends_;  // of each step so far, the labels after which it is done
  std::map<Rank, int> sent_, got_;      // messages so far, by peer
};

}  // namespace

Result<std::string> to_goal(const Algorithm& algorithm, const Shape& shape, std::size_t bytes,
                            double bytes_per_ns) {
  if (!has_equal_blocks(shape.collective))
    return error(Code::unsupported, "{}: GOAL has sizes, and blocks of {} may differ in theirs",
                 id(algorithm), name(shape.collective));
  std::string text = fmt::format("num_ranks {}\n", shape.size);
  for (const Schedule& schedule : build_all(algorithm, shape))
    text += "\n" + GoalRank(schedule, bytes, bytes_per_ns).text();
  return text;
}

}  // namespace anyccl::cli
