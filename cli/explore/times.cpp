#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "explore/variants.hpp"
#include "simulate/replay.hpp"

namespace anyccl::cli {

namespace {

using Nanoseconds = std::uint64_t;

Nanoseconds nanoseconds(double seconds) {
  return static_cast<Nanoseconds>(std::llround(seconds * 1e9));
}

/// The log of a replay, in the order of the movement's messages.
class TimesPacker {
 public:
  /// `seconds`: until the last rank is done, which is the last time of the clock.
  TimesPacker(const Movement& movement, const ReplayLog& log, double seconds)
      : movement_(movement), log_(log), clock_{nanoseconds(seconds)} {
    for (const auto* spans : {&log.waits, &log.additions})
      for (const StepSpan& span : *spans) note(span);
    for (const MessageSpan& span : log.messages) {
      note(span);
      messages_[{span.from, span.to}].push_back(&span);
    }
    std::sort(clock_.begin(), clock_.end());
    clock_.erase(std::unique(clock_.begin(), clock_.end()), clock_.end());
  }

  /// Each time after the one before it.
  std::string clock() const {
    PackedNumbers to;
    Nanoseconds last = 0;
    for (const Nanoseconds time : clock_) {
      to.add(time - last);
      last = time;
    }
    return to.text();
  }

  Result<std::string> pattern() const {
    if (log_.messages.size() != movement_.messages.size())
      return error(Code::internal, "{} has {} messages, and its replay {}", movement_.algorithm,
                   movement_.messages.size(), log_.messages.size());
    PackedNumbers to;
    for (const Message& m : movement_.messages) {
      const auto pair = messages_.find({uindex(m.from), uindex(m.to)});
      if (pair == messages_.end() || m.number >= pair->second.size())
        return error(Code::internal, "{}: message {} from rank {} to rank {} was not replayed",
                     movement_.algorithm, m.number, index(m.from), index(m.to));
      add(*pair->second[m.number], to);
    }
    add(log_.waits, to);
    add(log_.additions, to);
    return to.text();
  }

 private:
  void note(const TimeSpan& span) {
    clock_.push_back(nanoseconds(span.begin));
    clock_.push_back(nanoseconds(span.end));
  }

  std::uint64_t tick(double seconds) const {
    const auto at = std::lower_bound(clock_.begin(), clock_.end(), nanoseconds(seconds));
    return static_cast<std::uint64_t>(at - clock_.begin());
  }

  /// When it begins, and how many ticks later it ends.
  void add(const TimeSpan& span, PackedNumbers& to) const {
    to.add(tick(span.begin)).add(tick(span.end) - tick(span.begin));
  }

  /// For each rank, how many spans it has, and each of them.
  void add(std::vector<StepSpan> spans, PackedNumbers& to) const {
    std::stable_sort(spans.begin(), spans.end(), [](const StepSpan& a, const StepSpan& b) {
      return std::tie(a.rank, a.begin) < std::tie(b.rank, b.begin);
    });
    auto first = spans.begin();
    for (int r = 0; r < movement_.shape.size; ++r) {
      const auto last = std::find_if(first, spans.end(),
                                     [r](const StepSpan& s) { return s.rank != uindex(Rank{r}); });
      to.add(static_cast<std::uint64_t>(last - first));
      for (; first != last; ++first) add(*first, to);
    }
  }

  const Movement& movement_;
  const ReplayLog& log_;
  std::vector<Nanoseconds> clock_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<const MessageSpan*>> messages_;
};

}  // namespace

Result<std::string> times_of(const Algorithm& algorithm, const Movement& movement,
                             const std::vector<PlacedNetwork>& networks,
                             std::span<const std::size_t> bytes, const Machine& machine,
                             ExplorerPools& pools) {
  ANYCCL_TRY(const RankPrograms programs, RankPrograms::of(algorithm, movement.shape));
  PackedNumbers to;
  for (const PlacedNetwork& placed : networks)
    for (const std::vector<std::uint32_t>& place : placed.places)
      for (const std::size_t size : bytes) {
        ReplayLog log;
        ANYCCL_TRY(const ReplayResult result, replay(programs, placed.network, machine,
                                                     static_cast<double>(size), place, 0, &log));
        const TimesPacker packer(movement, log, result.seconds);
        ANYCCL_TRY(const std::string pattern, packer.pattern());
        to.add(pools.patterns.number_of(pattern)).add(pools.clocks.number_of(packer.clock()));
      }
  return to.text();
}

}  // namespace anyccl::cli
