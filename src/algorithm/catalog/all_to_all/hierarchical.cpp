// Hierarchical: the blocks of a host for another one are collected by one of its ranks, cross the
// network as one message, and are handed out there; each rank serves other hosts. Jackson and
// Booth, "Planned AlltoAllv: a cluster approach", EPCC, 2004. One message between two hosts instead
// of one for each pair of ranks, for two more copies inside the hosts; suits small blocks and many
// ranks per host. Hosts may be uneven and their ranks scattered.

#include "algorithm/catalog/levels.hpp"

namespace anyccl {
namespace {

/// One rank's part in the exchange with all hosts.
class Exchange {
 public:
  /// In place, copies the blocks of this rank first, as others read them later.
  Exchange(const Shape& s, Rank me)
      : n_(static_cast<std::uint32_t>(s.size)), me_(me), hosts_(ranks_by_host(s)), b_(s, me, 1) {
    while (hosts_[here_] != list_with(hosts_, me)) ++here_;
    if (!s.in_place || n_ == 1) return;
    row_ = b_.scratch(uindex(me) * n_, n_);
    b_.copy({Space::input, 0, n_}, row_);
  }

  Schedule build() && {
    const Slice near = pack_blocks(local());
    b_.send(local(), {near.space, near.first, 1, 1});
    for (const Rank r : local())
      if (r != me_) b_.recv(r, {Space::output, uindex(r)});
    b_.copy(block_for(me_), {Space::output, uindex(me_)});
    // In round d each host sends to the d-th one after it, so nobody has much outstanding.
    for (std::size_t d = 1; d < hosts_.size(); ++d) {
      const std::size_t to = (here_ + d) % hosts_.size(),
                        from = (here_ + hosts_.size() - d) % hosts_.size();
      b_.send(leader_for(here_, to), pack_blocks(hosts_[to]));
      if (leader_for(here_, to) == me_) send_for_all(to);
      if (leader_for(here_, from) == me_) hand_out(from);
      unpack(from);
    }
    return std::move(b_).finish();
  }

 private:
  const PeerList& local() const { return hosts_[here_]; }
  static std::uint32_t width(const PeerList& ranks) {
    return static_cast<std::uint32_t>(ranks.size());
  }
  /// Who, of host `of`, deals with host `with`.
  Rank leader_for(std::size_t of, std::size_t with) const {
    return leader(hosts_[of], static_cast<std::uint32_t>(with));
  }
  Slice block_for(Rank r) const { return {row_.space, row_.first + uindex(r)}; }
  /// Room for the blocks of some ranks for some others, those of one sender together or, else,
  /// those of one receiver.
  Slice scratch_for_blocks(const PeerList& senders, const PeerList& receivers,
                           bool by_sender = true) {
    Slice all{.count = 0};
    for (const Rank a : by_sender ? senders : receivers)
      for (const Rank b : by_sender ? receivers : senders) {
        const Slice one = b_.scratch(uindex(by_sender ? a : b) * n_ + uindex(by_sender ? b : a));
        all = {one.space, all.count == 0 ? one.first : all.first, all.count + 1};
      }
    return all;
  }
  static bool adjacent(const PeerList& ranks) {
    return uindex(ranks.back()) - uindex(ranks.front()) + 1 == ranks.size();
  }

  /// Returns my blocks for these ranks, one after the other: a copy, unless the ranks are adjacent.
  Slice pack_blocks(const PeerList& ranks) {
    if (adjacent(ranks)) return {row_.space, row_.first + uindex(ranks[0]), width(ranks)};
    const Slice pack = scratch_for_blocks({me_}, ranks);
    for (std::uint32_t i = 0; i < pack.count; ++i)
      b_.copy(block_for(ranks[i]), {pack.space, pack.first + i});
    return pack;
  }

  void send_for_all(std::size_t there) {
    const std::uint32_t each = width(hosts_[there]);
    const Slice all = scratch_for_blocks(local(), hosts_[there]);
    b_.recv(local(), {all.space, all.first, each, each}, pack_blocks(hosts_[there]));
    b_.send(leader_for(there, here_), all);
  }

  /// From blocks in the order of their senders to the blocks of each receiver.
  void hand_out(std::size_t there) {
    const std::uint32_t senders = width(hosts_[there]), receivers = width(local());
    const Slice come = scratch_for_blocks(hosts_[there], local());
    const Slice sorted = scratch_for_blocks(hosts_[there], local(), false);
    b_.recv(leader_for(there, here_), come);
    for (std::uint32_t r = 0; r < receivers; ++r)
      b_.recv(PeerList(senders, me_), {sorted.space, sorted.first + r * senders, 1, 1},
              {come.space, come.first + r, 1, receivers});
    b_.send(local(), {sorted.space, sorted.first, senders, senders});
    mine_.resize(hosts_.size());
    const auto me = std::find(local().begin(), local().end(), me_) - local().begin();
    mine_[there] = {sorted.space, sorted.first + static_cast<std::uint32_t>(me) * senders, senders};
  }

  /// Brings my blocks from host `there` to their places in the output. Receives them first, unless
  /// this rank is the one that hands them out.
  void unpack(std::size_t there) {
    const PeerList& senders = hosts_[there];
    const Rank from = leader_for(here_, there);
    Slice got =
        from == me_ ? mine_[there] : Slice{Space::output, uindex(senders[0]), width(senders)};
    if (from != me_ && !adjacent(senders)) got = scratch_for_blocks(senders, {me_});
    if (from != me_) b_.recv(from, got);
    for (std::uint32_t i = 0; i < got.count; ++i)
      b_.copy({got.space, got.first + i}, {Space::output, uindex(senders[i])});
  }

  std::uint32_t n_;
  Rank me_;
  std::vector<PeerList> hosts_;
  std::size_t here_ = 0;
  Builder b_;
  Slice row_{Space::input};
  std::vector<Slice> mine_;  // by host: my blocks, where I handed them out
};

Schedule build(const Shape& s, Rank me) {
  return Exchange(s, me).build();
}

}  // namespace

extern const Algorithm all_to_all_hierarchical = {"hierarchical", Collective::all_to_all, any_shape,
                                                  nullptr, build};

}  // namespace anyccl
