#pragma once
// A schedule lists the steps of one rank for a collective: which chunks it moves, sends, receives
// and adds up. Algorithms write it by a Builder. It is lowered to a plan (plan/plan.hpp) before it
// runs.

#include <cstdint>
#include <string_view>
#include <vector>

#include "algorithm/schedule/contract.hpp"

namespace anyccl {

/// `count` consecutive chunks; for the k-th peer of a step, `stride` * k chunks further on. Input
/// and output are circular: a slice that runs past the end continues at chunk 0. Scratch is not.
struct Slice {
  Space space = Space::output;
  std::uint32_t first = 0;
  std::uint32_t count = 1;
  std::uint32_t stride = 0;
  bool operator==(const Slice&) const = default;
};

using PeerList = std::vector<Rank>;

enum class Op : std::uint8_t { copy, reduce, send, recv, recv_reduce };

/// One movement of one rank. Entry k of `peers` uses piece k of the strided slices. An entry that
/// is the rank itself is the local operand: it reads piece k of `src` instead of a message.
///   copy         dst[k] = src[k]              reduce  dst = dst + src[0] + src[1] + ...
///   send         peer k may read src[k]       recv    dst[k] = message from peer k
///   recv_reduce  dst = sum over k             (one rounding, whatever the number of operands)
/// The operands of a sum are folded by the aligned tree over their places: docs/adr/0056.
/// Messages between two ranks match in step order. A send names each peer once; its own entry, if
/// any, reads nothing. A send is complete, and its source free, only when the peers have read it.
struct Step {
  Op op = Op::copy;
  Slice src, dst;
  PeerList peers;
  std::vector<std::uint32_t> after =
      {};  ///< Steps of this rank that must be complete first, ascending.
  bool operator==(const Step&) const = default;
};

/// The steps of one rank for one collective. Immutable once built.
struct Schedule {
  Rank rank{0};
  Contract contract;
  std::vector<Origin> scratch = {};  ///< For each scratch chunk, the origin it has room for.
  std::vector<Step> steps = {};
  /// Where their author wrote the steps, for messages: "mine.py:12", in memory of what was loaded.
  /// Empty: unknown; shorter than `steps`: the last ones are unknown.
  std::vector<std::string_view> places = {};

  std::uint32_t chunks(Space space) const;
  Origin origin(Space space, std::uint32_t chunk) const;

  /// Memory is numbered in cells, one per chunk; with Shape::in_place two spaces name the same
  /// cell.
  std::uint32_t cell(Space space, std::uint32_t chunk) const;
  std::uint32_t cells() const;
  /// Cells of piece k, in order. A chunk that does not exist is a cell >= cells().
  std::vector<std::uint32_t> piece(const Slice& slice, std::size_t k) const;

  /// The cells that a step touches, ascending, each once. Cells that are in their place
  /// already are not touched.
  struct Access {
    std::vector<std::uint32_t> reads, writes;
  };
  Access access(const Step& step) const;
};

/// Writes a Schedule. Dependencies follow from the slices: a step waits for the steps that wrote
/// what it reads, and for the steps that read or wrote what it writes. Steps that would move
/// nothing (a copy onto itself, a send to nobody else) are left out, so one rank alone needs no
/// special case.
class Builder {
 public:
  /// `chunks_per_block`: chunks per block, or of the whole vector where the collective has no
  /// blocks.
  Builder(const Shape& shape, Rank me, std::uint32_t chunks_per_block);
  /// Fresh room for `count` chunks of the collective's vector, from chunk `first`.
  Slice scratch(Origin first, std::uint32_t count = 1);
  Builder& copy(Slice src, Slice dst);
  Builder& reduce(Slice src, Slice dst);
  Builder& send(PeerList to, Slice src);
  Builder& send(Rank to, Slice src) { return send(PeerList{to}, src); }
  Builder& recv(PeerList from, Slice dst, Slice own = {});
  Builder& recv(Rank from, Slice dst) { return recv(PeerList{from}, dst); }
  /// dst = the sum of the messages, and of `own` where `from` names this rank.
  Builder& recv_reduce(PeerList from, Slice own, Slice dst);
  Builder& recv_reduce(Rank from, Slice own, Slice dst);  ///< dst = own + message
  PeerList everyone() const;                              ///< Ranks 0..n-1, self included.
  /// The next steps are written there (Schedule::places).
  Builder& set_place(std::string_view place);
  Schedule finish() &&;

 private:
  struct Cell {
    std::int64_t writer = -1;
    std::vector<std::uint32_t> readers;
  };
  /// Appends the step with its dependencies, unless it moves nothing.
  Builder& add(Step step);
  /// The steps that the next one, which touches these cells, has to wait for.
  std::vector<std::uint32_t> dependencies(const Schedule::Access& access);
  Schedule schedule_;
  std::string_view place_;
  std::vector<Cell> cells_;
};

}  // namespace anyccl
