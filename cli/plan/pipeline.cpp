#include "plan/pipeline.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace anyccl::cli {
namespace {

using Kind = PipelineSchedule::Kind;

constexpr std::pair<Kind, std::string_view> kKinds[] = {
    {Kind::gpipe, "gpipe"}, {Kind::one_f_one_b, "1f1b"}, {Kind::interleaved, "interleaved"},
    {Kind::two_bw, "2bw"},  {Kind::zero_bubble, "zb"},   {Kind::dual_pipe, "dualpipe"},
};

}  // namespace

Result<PipelineSchedule> parse_schedule(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = std::string_view(text).substr(0, colon);
  for (const auto& [kind, word] : kKinds) {
    if (name != word) continue;
    PipelineSchedule schedule{kind, 1};
    if (kind != Kind::interleaved && colon == text.size()) return schedule;
    const char* const end = text.data() + text.size();
    if (kind == Kind::interleaved && colon < text.size())
      if (const auto read = std::from_chars(text.data() + colon + 1, end, schedule.chunks);
          read.ec == std::errc() && read.ptr == end && schedule.chunks >= 2)
        return schedule;
  }
  return error(Code::invalid_argument,
               "--schedule {}: it must be gpipe, 1f1b, interleaved:CHUNKS (2 or more), 2bw, zb or "
               "dualpipe",
               text);
}

std::string to_text(const PipelineSchedule& schedule) {
  const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                         [&](const auto& k) { return k.first == schedule.kind; });
  const bool has_chunks = schedule.kind == Kind::interleaved;
  return std::string(found->second) + (has_chunks ? fmt::format(":{}", schedule.chunks) : "");
}

double bubble_s(const PipelineSchedule& schedule, int stages, int micro_batches, StageTime time) {
  const double others = stages - 1, weights_s = time.backward_s / 2;
  if (stages == 1) return 0;
  switch (schedule.kind) {
    case Kind::gpipe:
    case Kind::one_f_one_b:
      return others * time.both();
    case Kind::interleaved:
      return others / schedule.chunks * time.both();
    case Kind::two_bw:  // the next step follows at once, but no step has fewer micro-batches
      return std::max(0, stages - micro_batches) * time.both();
    case Kind::zero_bubble:
      return others * (time.both() - 2 * weights_s);
    case Kind::dual_pipe:
      return (stages / 2.0 - 1) * (time.both() + time.backward_s - 3 * weights_s);
  }
  return 0;
}

double held_micro_batches(const PipelineSchedule& schedule, int stages, int micro_batches) {
  const double all = micro_batches;
  switch (schedule.kind) {
    case Kind::gpipe:
      return all;
    case Kind::interleaved:
      return std::min(all, stages + (stages - 1.0) / schedule.chunks);
    case Kind::dual_pipe:
      return std::min(all, stages + 1.0);
    default:
      return std::min(all, static_cast<double>(stages));
  }
}

int weight_copies(const PipelineSchedule& schedule) {
  return schedule.kind == Kind::two_bw || schedule.kind == Kind::dual_pipe ? 2 : 1;
}

}  // namespace anyccl::cli
