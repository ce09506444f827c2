#include "blame/groups.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace anyccl::cli {
namespace {

/// What `dump` says about another rank; null: nothing.
const DumpedPeer* peer_in(const RankDump& dump, int rank) {
  const auto found = std::find_if(dump.peers.begin(), dump.peers.end(),
                                  [&](const DumpedPeer& peer) { return peer.rank == rank; });
  return found == dump.peers.end() ? nullptr : &*found;
}

}  // namespace

const RankDump* Group::dump_of(int rank) const {
  const auto found = dumps.find(rank);
  return found == dumps.end() ? nullptr : found->second;
}

std::uint64_t Group::entered(int rank) const {
  const RankDump* const own = dump_of(rank);
  std::uint64_t entered = own == nullptr ? 0 : own->sequence;
  for (const auto& [other, dump] : dumps)
    if (const DumpedPeer* const peer = peer_in(*dump, rank))
      entered = std::max(entered, peer->entered);
  return entered;
}

std::string Group::fate(int rank) const {
  const RankDump* const own = dump_of(rank);
  const bool has_failed = own != nullptr && !own->failure.empty();
  std::string fate;
  for (const auto& [other, dump] : dumps) {
    const DumpedPeer* const peer = peer_in(*dump, rank);
    if (peer == nullptr) continue;
    if (!has_failed && (peer->state == "dead" || peer->state == "gone" || peer->state == "silent"))
      return "dead";
    if (!has_failed && peer->state == "left") fate = "left";
    if (peer->stopped && fate.empty()) fate = "stopped";
  }
  return fate;
}

std::string Group::process(int rank) const {
  if (const RankDump* const own = dump_of(rank)) return own->process;
  for (const auto& [other, dump] : dumps)
    if (const DumpedPeer* const peer = peer_in(*dump, rank)) return peer->process;
  return "";
}

std::string Group::node(int rank) const {
  const std::string mine = process(rank);
  int ranks = 0;
  for (int r = 0; r < size; ++r) ranks += process(r) == mine ? 1 : 0;
  return mine.empty() || ranks > 1 ? fmt::format("rank {} of {}", rank, id) : mine;
}

std::vector<Group> groups_of(const std::vector<RankDump>& dumps) {
  std::map<std::string, Group> groups;
  for (const RankDump& dump : dumps) {
    Group& group = groups[dump.communicator];
    group.id = dump.communicator;
    group.name = dump.name;
    group.size = std::max(group.size, dump.size);
    const RankDump*& mine = group.dumps[dump.rank];
    if (mine == nullptr || mine->time_ns < dump.time_ns) mine = &dump;
  }
  std::vector<Group> list;
  for (auto& [id, group] : groups) list.push_back(std::move(group));
  return list;
}

}  // namespace anyccl::cli
