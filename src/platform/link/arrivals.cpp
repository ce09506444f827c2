#include "platform/link/arrivals.hpp"

#include <utility>

namespace anyccl::link {
namespace {

constexpr std::size_t kSpareNodes = 64;

}  // namespace

Arrival* Arrivals::find(const Key& key) {
  if (map_.empty()) return nullptr;
  const auto at = map_.find(key);
  return at == map_.end() ? nullptr : &at->second;
}

bool Arrivals::add(Arrival arrival) {
  const Key key = key_of(arrival.header);
  if (spare_.empty()) return map_.try_emplace(key, std::move(arrival)).second;
  Map::node_type& node = spare_.back();
  node.key() = key;
  node.mapped() = std::move(arrival);
  auto outcome = map_.insert(std::move(node));
  if (outcome.inserted)
    spare_.pop_back();
  else
    spare_.back() = std::move(outcome.node);
  return outcome.inserted;
}

std::size_t Arrivals::bytes() const {
  std::size_t sum = 0;
  for (const auto& [key, arrival] : map_) sum += sizeof arrival + arrival.buffer.capacity();
  return sum;
}

Arrival Arrivals::take(Map::const_iterator at) {
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

}  // namespace anyccl::link
