#include "framework/device/exchanges.hpp"

#include "base/types.hpp"

namespace anyccl {

bool ExchangedCall::fits(const PreparedCall& call) {
  switch (static_cast<Collective>(call.record.collective)) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return call.bytes.given <= DeviceExchange::kMostBytes;
    default:
      return false;
  }
}

ExchangedCall::ExchangedCall(const PreparedCall& call, Rank me, int ranks)
    : bytes(call.bytes.given), block(bytes) {
  const auto what = static_cast<Collective>(call.record.collective);
  reduces = what == Collective::all_reduce || what == Collective::reduce_scatter;
  if (what != Collective::reduce_scatter && what != Collective::all_to_all) return;
  block = bytes / static_cast<std::size_t>(ranks);
  offset = uindex(me) * block;
}

/// Two that follow each other have both sets of lines.
bool Exchanges::fills_lines(std::uint32_t number) {
  constexpr std::uint32_t kBetween = 1U << 30;
  return number % kBetween <= 1;
}

DeviceExchange Exchanges::next(const Call& call, const PreparedCall& prepared, void* blocks) {
  const ExchangedCall exchanged(prepared, Rank{static_cast<int>(me_)}, ranks_);
  DeviceExchange next;
  next.ranks = static_cast<std::uint32_t>(ranks_);
  next.me = me_;
  next.number = ++number_;
  next.fills_lines = fills_lines(next.number);
  next.digest = prepared.digest;
  for (std::uint32_t r = 0; r < next.ranks; ++r) next.lines[r] = wires_.lines(r, next.number);
  next.stop = wires_.stop();
  next.input = call.input;
  next.bytes = exchanged.bytes;
  next.offset = exchanged.offset;
  next.block = exchanged.block;
  if (exchanged.reduces) {
    next.what = {call.dtype, call.op, next.ranks};
    next.result = call.output;
  }
  next.blocks = exchanged.reduces ? blocks : call.output;
  return next;
}

/// The number in the first line of a rank.
WordOfRank Exchanges::word_of(std::uint32_t rank, std::uint32_t number) const {
  auto* const line = reinterpret_cast<std::uint32_t*>(wires_.lines(rank, number));
  return {rank, line + 1, number};
}

std::vector<WordOfRank> Exchanges::next_waits() const {
  std::vector<WordOfRank> all;
  for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(ranks_); ++r)
    if (r != me_) all.push_back(word_of(r, number_ + 1));
  return all;
}

}  // namespace anyccl
