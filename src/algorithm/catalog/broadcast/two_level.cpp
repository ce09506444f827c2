// Two level: a binary tree over the hosts, from the root's on, in which each host gets the message
// once; its leader passes it on to further hosts and to the ranks of its own. Karonis et al.,
// "Exploiting hierarchy in parallel computer networks to optimize collective operation
// performance", IPDPS 2000. No host sends more than twice over the network, whatever the number of
// its ranks; tiles follow each other through the tree. Hosts may be uneven and their ranks
// scattered.

#include "algorithm/catalog/levels.hpp"
#include "algorithm/catalog/tree.hpp"

namespace anyccl {
namespace {

/// The rank of each host that has the message first, the root's host in front.
PeerList leaders_from(const std::vector<PeerList>& hosts, Rank root) {
  PeerList leaders;
  for (const PeerList& host : hosts) leaders.push_back(host[0]);
  const Rank first = list_with(hosts, root)[0];
  std::rotate(leaders.begin(), std::find(leaders.begin(), leaders.end(), first), leaders.end());
  leaders[0] = root;
  return leaders;
}

Schedule build(const Shape& s, Rank me) {
  const std::vector<PeerList> hosts = ranks_by_host(s);
  const PeerList leaders = leaders_from(hosts, s.root);
  const PeerList& home = list_with(hosts, me);
  const auto place = std::find(leaders.begin(), leaders.end(), me) - leaders.begin();
  const Slice out{Space::output};
  Builder b(s, me, 1);
  if (place == std::ssize(leaders)) {
    b.recv(*std::find_first_of(leaders.begin(), leaders.end(), home.begin(), home.end()), out);
    return std::move(b).finish();
  }
  if (place > 0) b.recv(leaders[static_cast<std::size_t>((place - 1) / 2)], out);
  PeerList readers;
  for (auto child = 2 * place + 1; child <= 2 * place + 2 && child < std::ssize(leaders); ++child)
    readers.push_back(leaders[static_cast<std::size_t>(child)]);
  for (const Rank r : home)
    if (r != me) readers.push_back(r);
  b.send(readers, place == 0 ? Slice{Space::input} : out);
  if (place == 0) b.copy({Space::input}, out);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm broadcast_two_level = {"two_level", Collective::broadcast, any_shape,
                                              nullptr, build};

}  // namespace anyccl
