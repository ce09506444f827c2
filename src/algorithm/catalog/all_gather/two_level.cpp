// Two level: everyone publishes its block for its own host and for one rank of each other host,
// which passes it on inside that host. Zhu, Goodell, Gropp and Thakur, "Hierarchical collectives in
// MPICH2", EuroPVM/MPI 2009, with every rank as a leader. Each block crosses to each other host
// once, and all ranks of a host share that work. H rounds for H even hosts, of which one crosses
// the network; every rank receives n blocks, so it suits hosts with several ranks. Hosts may be
// uneven and their ranks scattered.

#include "algorithm/catalog/levels.hpp"

namespace anyccl {
namespace {

Slice block(Rank r) {
  return {Space::output, uindex(r)};
}

/// The blocks of host `there` that this rank passes on.
void bring_in(Builder& b, Rank me, const PeerList& home, const PeerList& there) {
  for (std::uint32_t place = 0; place < there.size(); ++place)
    if (leader(home, place) == me) b.recv(there[place], block(there[place]));
}

/// As many blocks at a time as this host has ranks. Nobody has more than one in hand, so nobody
/// waits in a circle.
void pass_on(Builder& b, Rank me, const PeerList& home, const PeerList& there) {
  for (std::size_t first = 0; first < there.size(); first += home.size()) {
    const std::size_t count = std::min(home.size(), there.size() - first);
    for (std::size_t i = 0; i < count; ++i)
      if (home[i] == me) b.send(home, block(there[first + i]));
    for (std::size_t i = 0; i < count; ++i)
      if (home[i] != me) b.recv(home[i], block(there[first + i]));
  }
}

Schedule build(const Shape& s, Rank me) {
  const std::vector<PeerList> hosts = ranks_by_host(s);
  const PeerList& home = list_with(hosts, me);
  const auto place =
      static_cast<std::uint32_t>(std::find(home.begin(), home.end(), me) - home.begin());
  PeerList readers = home;
  for (const PeerList& host : hosts)
    if (&host != &home) readers.push_back(leader(host, place));
  Builder b(s, me, 1);
  b.send(readers, {Space::input});
  b.copy({Space::input}, block(me));
  for (const Rank r : home)
    if (r != me) b.recv(r, block(r));
  for (const auto part : {bring_in, pass_on})  // all before the first, or hosts wait in a circle
    for (const PeerList& host : hosts)
      if (&host != &home) part(b, me, home, host);
  return std::move(b).finish();
}

}  // namespace

extern const Algorithm all_gather_two_level = {
    "two_level", Collective::all_gather, any_shape, nullptr, build, by_position, kVForm};

}  // namespace anyccl
