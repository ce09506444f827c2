// Single leader: one rank of each host adds up its host, the leaders read each other's sums at
// once, and share the result inside their hosts. Karonis et al., "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000; one_shot between the
// leaders. One round over the network and few messages, but all work of a host is done by one rank,
// and H-1 vectors leave each host: it suits small messages and few hosts. Hosts may be uneven and
// their ranks scattered.

#include "algorithm/catalog/aligned_tree.hpp"

namespace anyccl {
namespace {

Schedule build(const Shape& s, Rank me) {
  const std::vector<PeerList> hosts = ranks_by_host(s);
  const PeerList& home = list_with(hosts, me);
  const Slice in{Space::input}, out{Space::output};
  Builder b(s, me, 1);
  if (me != home[0]) {
    b.send(home[0], in).recv(home[0], out);
    return std::move(b).finish();
  }
  Slice sum = hosts.size() > 1 ? in : out;
  if (hosts.size() > 1 && (home.size() > 1 || s.in_place)) sum = b.scratch(0);  // read to the end
  b.recv_reduce(home, in, sum);
  PeerList leaders;
  for (const PeerList& host : hosts) leaders.push_back(host[0]);
  b.send(leaders, sum);
  b.recv_reduce(leaders, sum, out);
  b.send(home, out);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_reduce_single_leader = {
    "single_leader", Collective::all_reduce, any_shape, nullptr, build, tree_of_aligned_hosts};

}  // namespace anyccl
