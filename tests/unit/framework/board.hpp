#pragma once
// The ranks of a communicator live in one thread here, and a test makes each of them go on. What a
// rank publishes lies on a board, where the others read it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/membership/membership.hpp"
#include "framework/membership/routes.hpp"
#include "unit/framework/fake_peers.hpp"

namespace anyccl::test {

/// The board has what all ranks have published, and a test says what of it can be seen.
class Board {
 public:
  void put(std::uint32_t rank, const Outgoing& out, std::vector<std::byte> bytes) {
    all_[{out.operation, rank, out.number}] = {out.digest, std::move(bytes)};
  }
  /// What a rank looks for; null if it cannot be seen, or belongs to another call.
  const std::byte* find(const Incoming& in) const {
    if (in.operation > shown) return nullptr;
    const auto found = all_.find({in.operation, in.rank, in.number});
    if (found == all_.end() || found->second.digest != in.digest) return nullptr;
    return found->second.bytes.data() + in.offset;
  }
  /// Whatever this rank has published in the operation, it is something else from now on.
  void spoil(Rank rank, std::uint64_t operation) {
    for (auto& [place, one] : all_)
      if (std::get<0>(place) == operation && std::get<1>(place) == uindex(rank))
        for (std::byte& byte : one.bytes) byte = ~byte;
  }

  std::uint64_t shown = ~std::uint64_t{0};  ///< What belongs to later operations cannot be seen.
  bool is_read = true;                      ///< Whether readers are through with what was lent.
  const std::byte* offered = nullptr;       ///< Where what was published last lies at its rank.

 private:
  struct Publication {
    std::uint32_t digest = 0;
    std::vector<std::byte> bytes;
  };
  std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>, Publication> all_;
};

/// The way of rank `me` to all others. They are always there, and never send a message.
class BoardPeers final : public FakePeers {
 public:
  BoardPeers(Board& board, Rank me, std::vector<Rank> peers)
      : FakePeers(0, std::move(peers)), board_(board), me_(uindex(me)) {}
  PeerState state(Rank) override { return PeerState::present; }

 private:
  bool has_published(std::uint32_t) override { return false; }  // see poll()
  anyccl::Publications::Offered offer(const Outgoing&, const std::byte* source, bool) override {
    board_.offered = source;
    return anyccl::Publications::Offered::refused;
  }
  std::byte* reserve(const Outgoing& out) override {
    room_.assign(out.bytes + 1, std::byte{});  // nothing has an address, too
    return room_.data();
  }
  void publish(const Outgoing& out) override { board_.put(me_, out, std::move(room_)); }
  const std::byte* poll(const Incoming& in) override { return board_.find(in); }
  bool finished(std::uint64_t, bool) override { return board_.is_read; }
  bool settled() override { return board_.is_read; }
  bool is_behind(Rank) override { return !board_.is_read; }

  Board& board_;
  const std::uint32_t me_;
  std::vector<std::byte> room_;
};

/// Rank `me` of `size`. Algorithms are those that `rules` name, where there are such.
inline Membership member_of(Board& board, Rank me, int size, const char* rules = "one_shot") {
  Membership m;
  m.rank = me;
  m.size = size;
  m.near_of.assign(static_cast<std::size_t>(size), 0);
  m.ring_bytes = std::size_t{1} << 20;
  m.policy.environment.algorithms = *AlgorithmRules::parse(rules);
  std::vector<Rank> peers;
  for (int r = 0; r < size; ++r)
    if (Rank{r} != me) peers.push_back(Rank{r});
  m.transports.push_back(std::make_unique<BoardPeers>(board, me, std::move(peers)));
  return m;
}

/// Adds up the vectors of all ranks.
inline Call sum_of(std::span<const float> in, std::span<float> out) {
  Call call;
  call.count = in.size();
  call.input = reinterpret_cast<const std::byte*>(in.data());
  call.output = reinterpret_cast<std::byte*>(out.data());
  return call;
}

}  // namespace anyccl::test
