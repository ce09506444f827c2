#include "plan/search.hpp"

#include <algorithm>

namespace anyccl::cli {
namespace {

using Kind = PipelineSchedule::Kind;

/// A part of a sequence that is shorter is not worth dividing.
constexpr int kLeastContextPart = 8192;

std::vector<int> divisors(int number, int most) {
  std::vector<int> found;
  for (int d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) found.push_back(d);
  return found;
}

bool is_faster(const PlannedStep& a, const PlannedStep& b) {
  if (a.step.time_s != b.step.time_s) return a.step.time_s < b.step.time_s;
  return a.step.memory.all() < b.step.memory.all();
}

class Search {
 public:
  Search(const Model& m, const Cluster& c, const Parallelism& wanted) : m_(m), c_(c), p_(wanted) {}

  LayoutSearch run(std::size_t most) && {
    for (int tensor : divisors(c_.devices, c_.devices_per_host)) {
      if (!c_.keeps_together(tensor)) continue;
      p_.tensor = tensor;
      p_.sequence_parallel = tensor > 1;
      const int rest = c_.devices / tensor;
      for (int pipeline : divisors(rest, most_stages(m_))) {
        p_.pipeline = pipeline;
        for (int context : divisors(rest / pipeline, std::max(1, p_.sequence / kLeastContextPart)))
          try_context(context);
      }
    }
    const auto middle =
        found_.best.begin() + static_cast<std::ptrdiff_t>(std::min(most, found_.best.size()));
    std::partial_sort(found_.best.begin(), middle, found_.best.end(), is_faster);
    found_.best.erase(middle, found_.best.end());
    return std::move(found_);
  }

 private:
  void try_context(int context) {
    p_.context = context;
    p_.data = c_.devices / p_.tensor / p_.pipeline / context;
    const int experts = m_.experts ? m_.experts->routed : 1;
    for (int expert : divisors(p_.data * context, experts)) {
      p_.expert = expert;
      for (int zero : {1, 3}) {
        p_.zero = zero;
        for (p_.micro_batch = 1; p_.micro_batch <= 8; p_.micro_batch *= 2) try_schedules();
      }
    }
  }

  /// Tries 1F1B and, with several stages, interleaved 1F1B of 2, 4 and 8 chunks.
  void try_schedules() {
    p_.schedule = {};
    try_recompute();
    if (p_.pipeline == 1) return;
    for (int chunks : {2, 4, 8}) {
      p_.schedule = {Kind::interleaved, chunks};
      try_recompute();
    }
  }

  /// Adds the layout with selective and with full recomputation, where check() allows it.
  void try_recompute() {
    for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
      p_.recompute = recompute;
      if (check(p_, m_, c_).ok()) add({p_, estimate(m_, c_, p_)});
    }
  }

  /// Keeps a plan that fits the memory. All others are counted, and the fastest of them is kept.
  void add(PlannedStep plan) {
    if (fits(plan.step.memory, c_.device)) {
      ++found_.fitting;
      found_.best.push_back(std::move(plan));
      return;
    }
    ++found_.too_large;
    if (!found_.fastest_too_large || is_faster(plan, *found_.fastest_too_large))
      found_.fastest_too_large = std::move(plan);
  }

  const Model& m_;
  const Cluster& c_;
  Parallelism p_;
  LayoutSearch found_;
};

}  // namespace

bool fits(const DeviceMemory& memory, const Device& device) {
  return memory.all() <= kUsableMemory * device.memory_GB * 1e9;
}

LayoutSearch search_layouts(const Model& model, const Cluster& cluster, const Parallelism& wanted,
                            std::size_t most) {
  return Search(model, cluster, wanted).run(most);
}

}  // namespace anyccl::cli
