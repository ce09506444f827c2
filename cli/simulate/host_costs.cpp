#include "simulate/host_costs.hpp"

#include <algorithm>

namespace anyccl::cli {

namespace {

constexpr double kLine = 2048, kTile = 65536;  // of protocol_limits()
constexpr double kInCache = 131072;            // of the caches of one core
constexpr double kLeastTurn_s = 20e-9;

}  // namespace

HostCosts::HostCosts(const Calibration& c, const LinkCosts& link, const HostPlans& plans,
                     const HostPlans::Bound& call)
    : cores_(std::min(static_cast<std::uint32_t>(c.cores), plans.ranks())),
      overhead_s_(link.overhead_s),
      user_bytes_(call.user_bytes) {
  const bool in_turns = plans.ranks() > cores_;
  factor_ = c.factor_at(link.name, static_cast<double>(call.bytes), in_turns);
  // Never 0: ranks that wait would pass a core on for ever, and no time would go by.
  turn_s_ = in_turns ? factor_ * std::max(c.hand_over_s, kLeastTurn_s) : 0;
  alone_ = kinds_of(c, link, plans, call, false);
  shared_ = kinds_of(c, link, plans, call, true);
}

HostCosts::Kinds HostCosts::kinds_of(const Calibration& c, const LinkCosts& link,
                                     const HostPlans& plans, const HostPlans::Bound& call,
                                     bool shared) const {
  const double per_core = static_cast<double>(plans.ranks()) / cores_;
  const auto rates = [&](double bytes) {
    const MemoryRate rate = c.memory_at(bytes, shared);
    return Rates{rate.read_s, rate.write_s};
  };
  // A rank comes to a place of its ring again after all of the ring, or of what it publishes, and
  // after its share of the memory of the call.
  const double published = std::max(1.0, call.published_bytes);
  const double ring = std::min(published, static_cast<double>(plans.ring_bytes()));
  const double around = ring / published * (call.user_bytes + published);
  // The program has touched the memory of the call before: the other ranks of the core in between,
  // and half of its own.
  const double everything = per_core * (call.user_bytes + ring + call.scratch_bytes);
  Kinds kinds;
  kinds.user = rates(everything * (1 - 0.5 / per_core));
  kinds.scratch = rates(per_core * call.scratch_bytes);
  kinds.ring = rates(per_core * around);
  // A message of one tile is copied twice. What that takes beyond two copies in caches is the way
  // between cores, and memory that is further away than another core has no such way.
  const Rates near = rates(kInCache);
  const double across_s = std::max(0.0, link.at(kTile).beta_s / 2 - near.read_s - near.write_s);
  kinds.ring.read_s = std::max(kinds.ring.read_s, near.read_s + across_s);
  kinds.ring.write_s = std::max(kinds.ring.write_s, near.write_s + across_s);
  // The other side of a copy is counted as what it is.
  const double line_s = link.at(kLine).beta_s / 2;
  kinds.line = {std::max(0.0, line_s - near.write_s), std::max(0.0, line_s - near.read_s)};
  return kinds;
}

double HostCosts::seconds(const Moved& m, bool shared) const {
  const Kinds& k = shared ? shared_ : alone_;
  const double in_lines = m.line_read * k.line.read_s + m.line_write * k.line.write_s;
  const double in_memory = m.user_read * k.user.read_s + m.user_write * k.user.write_s +
                           m.scratch_read * k.scratch.read_s + m.scratch_write * k.scratch.write_s +
                           m.ring_read * k.ring.read_s + m.ring_write * k.ring.write_s;
  return factor_ * (overhead_s_ * (m.reads + m.publications) + in_lines + in_memory);
}

double HostCosts::touch_s(bool shared) const {
  const Kinds& k = shared ? shared_ : alone_;
  return factor_ * user_bytes_ / 2 * (k.user.read_s + k.user.write_s);
}

}  // namespace anyccl::cli
