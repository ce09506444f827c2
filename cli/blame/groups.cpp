#include "blame/groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace anyccl::cli {
namespace {

/// Different ranks may have seen a rank end in different ways: the surest one counts.
std::ptrdiff_t certainty_of(std::string_view fate) {
  constexpr std::string_view kFates[] = {"", "stopped", "left", "silent", "dead"};
  return std::find(std::begin(kFates), std::end(kFates), fate) - std::begin(kFates);
}

}  // namespace

const RankDump* Group::dump_of(int rank) const {
  const auto found = dumps.find(rank);
  return found == dumps.end() ? nullptr : found->second;
}

void Group::index_by_rank() {
  ranks_.assign(static_cast<std::size_t>(size), {});
  for (const auto& [rank, dump] : dumps) {
    at(rank).entered = dump->sequence;
    at(rank).process = dump->process;
  }
  for (const auto& [other, dump] : dumps)
    for (const DumpedPeer& peer : dump->peers) add(peer);
  std::map<std::string, int> ranks_of;
  for (const Known& one : ranks_) ++ranks_of[one.process];
  for (int r = 0; r < size; ++r)
    at(r).node = at(r).process.empty() || ranks_of[at(r).process] > 1
                     ? fmt::format("rank {} of {}", r, id)
                     : at(r).process;
}

void Group::add(const DumpedPeer& peer) {
  Known& known = at(peer.rank);
  const RankDump* const own = dump_of(peer.rank);
  const bool has_failed = own != nullptr && !own->failure.empty();
  known.entered = std::max(known.entered, peer.entered);
  if (own == nullptr && known.process.empty()) known.process = peer.process;
  const std::string_view state = has_failed ? std::string_view() : peer.state;
  const std::string_view fate = state == "dead" || state == "gone"     ? "dead"
                                : state == "silent" || state == "left" ? state
                                : peer.stopped                         ? "stopped"
                                                                       : "";
  if (certainty_of(fate) > certainty_of(known.fate)) known.fate = fate;
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
  for (auto& [id, group] : groups) {
    group.index_by_rank();
    list.push_back(std::move(group));
  }
  std::stable_sort(list.begin(), list.end(),  // ids are other ones in each run
                   [](const Group& a, const Group& b) { return a.name < b.name; });
  return list;
}

}  // namespace anyccl::cli
