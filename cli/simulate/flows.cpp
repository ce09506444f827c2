#include "simulate/flows.hpp"

#include <algorithm>
#include <limits>

namespace anyccl::cli {

namespace {
constexpr double kNoLimit = std::numeric_limits<double>::infinity();
}

Flows::Flows(const Network& network, const Machine& machine, EventQueue& queue)
    : network_(network),
      machine_(machine),
      queue_(queue),
      sharers_(network.links().size()),
      share_(network.links().size(), kNoLimit),
      carried_(network.links().size()),
      is_touched_(network.links().size()) {
  for (const Network::Link& link : network.links()) {
    const double own = network.classes()[link.link_class].bytes_per_s;
    capacity_.push_back(own > 0 ? own : machine.bytes_per_s);
  }
}

std::uint32_t Flows::new_flow() {
  if (free_flows_.empty()) {
    flows_.emplace_back();
    return static_cast<std::uint32_t>(flows_.size()) - 1;
  }
  const std::uint32_t flow = free_flows_.back();
  free_flows_.pop_back();
  return flow;
}

std::uint32_t Flows::take_hops(std::uint32_t hops) {
  if (free_hops_.size() <= hops) free_hops_.resize(hops + 1);
  if (free_hops_[hops].empty()) {
    hops_.resize(hops_.size() + hops);
    return static_cast<std::uint32_t>(hops_.size()) - hops;
  }
  const std::uint32_t first = free_hops_[hops].back();
  free_hops_[hops].pop_back();
  return first;
}

void Flows::send(double leaves, const Message& message, double bytes, double latency_s,
                 double most_bytes_per_s) {
  way_.clear();
  network_.route(message.from, message.to, way_);
  const std::uint32_t number = new_flow();
  Flow& flow = flows_[number];
  flow.message = message;
  flow.left = bytes;
  flow.rate = 0;
  flow.most = most_bytes_per_s;
  flow.hops = static_cast<std::uint32_t>(way_.size());
  flow.first_hop = take_hops(flow.hops);
  for (std::uint32_t k = 0; k < flow.hops; ++k) {
    hops_[flow.first_hop + k].link = way_[k];
    carried_[way_[k]] += bytes;
  }
  queue_.push(leaves + latency_s + flow.hops * machine_.hop_s,
              {EventKind::flow_begins, number, flow.version});
}

void Flows::deliver(double time, const Message& message) {
  const std::uint32_t number = new_flow();
  Flow& flow = flows_[number];
  flow.message = message;
  flow.left = 0;  // so that it is there when it begins
  flow.hops = 0;
  flow.first_hop = take_hops(0);
  queue_.push(time, {EventKind::flow_begins, number, flow.version});
}

bool Flows::handle(double now, const Event& event, Message& arrived) {
  Flow& flow = flows_[event.subject];
  if (flow.version != event.version) return false;
  const bool begins = event.kind == EventKind::flow_begins;
  if (begins && flow.left > 0) {
    begin(now, event.subject);
    return false;
  }
  if (!begins) end(event.subject);
  arrived = flow.message;
  ++flow.version;
  free_hops_[flow.hops].push_back(flow.first_hop);
  free_flows_.push_back(event.subject);
  return true;
}

void Flows::note_changed(std::uint32_t link) {
  if (is_touched_[link]) return;
  is_touched_[link] = true;
  touched_.push_back(link);
}

void Flows::begin(double now, std::uint32_t number) {
  const Flow& flow = flows_[number];
  flows_[number].since = now;
  for (std::uint32_t h = flow.first_hop; h < flow.first_hop + flow.hops; ++h) {
    std::vector<Sharer>& sharers = sharers_[hops_[h].link];
    hops_[h].place = static_cast<std::uint32_t>(sharers.size());
    sharers.push_back({number, h});
    note_changed(hops_[h].link);
  }
}

void Flows::end(std::uint32_t number) {
  const Flow& flow = flows_[number];
  for (std::uint32_t h = flow.first_hop; h < flow.first_hop + flow.hops; ++h) {
    std::vector<Sharer>& sharers = sharers_[hops_[h].link];
    sharers[hops_[h].place] = sharers.back();
    hops_[sharers.back().hop].place = hops_[h].place;
    sharers.pop_back();
    note_changed(hops_[h].link);
  }
}

void Flows::update_rates(double now) {
  shares_before_.clear();
  for (const std::uint32_t link : touched_) {
    shares_before_.push_back(share_[link]);
    const std::size_t flows = sharers_[link].size();
    share_[link] = flows == 0 ? kNoLimit : capacity_[link] / static_cast<double>(flows);
  }
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    update_rates_of(now, touched_[i], shares_before_[i]);
    is_touched_[touched_[i]] = false;
  }
  touched_.clear();
}

void Flows::update_rates_of(double now, std::uint32_t link, double before) {
  for (const Sharer& sharer : sharers_[link]) {
    Flow& flow = flows_[sharer.flow];
    // Another link is the narrowest one, was it before, and is looked at itself if it changed.
    if (flow.rate > 0 && flow.rate <= share_[link] && flow.rate != before) continue;
    double rate = flow.most;
    for (std::uint32_t h = flow.first_hop; h < flow.first_hop + flow.hops; ++h)
      rate = std::min(rate, share_[hops_[h].link]);
    if (rate == flow.rate) continue;
    flow.left = std::max(0.0, flow.left - flow.rate * (now - flow.since));
    flow.since = now;
    flow.rate = rate;
    queue_.push(now + flow.left / rate, {EventKind::flow_ends, sharer.flow, ++flow.version});
  }
}

}  // namespace anyccl::cli
