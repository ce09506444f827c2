#include "platform/transport/sockets/arrivals.hpp"

#include <utility>

namespace anyccl::sockets {
namespace {

constexpr std::size_t kSpareNodes = 64;

// Counts at least what a node costs, so that a flood of empty frames is bounded as well.
std::size_t cost_of(const Arrival& arrival) {
  return sizeof(Arrival) + arrival.buffer.capacity();
}

}  // namespace

Arrival* Arrivals::find(const Key& key) {
  const auto at = map_.find(key);
  return at == map_.end() ? nullptr : &at->second;
}

bool Arrivals::add(Arrival arrival) {
  const Key key = key_of(arrival.header);
  const std::size_t cost = cost_of(arrival);
  if (spare_.empty()) {
    if (!map_.try_emplace(key, std::move(arrival)).second) return false;
  } else {
    Map::node_type& node = spare_.back();
    node.key() = key;
    node.mapped() = std::move(arrival);
    auto outcome = map_.insert(std::move(node));
    if (!outcome.inserted) {
      spare_.back() = std::move(outcome.node);
      return false;
    }
    spare_.pop_back();
  }
  bytes_ += cost;
  total_ += cost;
  return true;
}

Arrival Arrivals::take(Map::const_iterator at) {
  const std::size_t cost = cost_of(at->second);
  bytes_ -= cost;
  total_ -= cost;
  Map::node_type node = map_.extract(at);
  Arrival arrival = std::move(node.mapped());
  if (spare_.size() < kSpareNodes) spare_.push_back(std::move(node));
  return arrival;
}

Arrival Arrivals::remove(const Key& key) {
  const auto at = map_.find(key);
  return at == map_.end() ? Arrival{} : take(at);
}

std::vector<Arrival> Arrivals::remove_before(std::uint64_t operation) {
  std::vector<Arrival> removed;
  for (auto at = map_.cbegin(); at != map_.cend();) {
    const auto here = at++;
    if (!here->first.is_message && here->first.operation < operation) removed.push_back(take(here));
  }
  return removed;
}

}  // namespace anyccl::sockets
