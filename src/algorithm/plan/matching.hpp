#pragma once
// The messages of one schedule: sender, receiver, cells. Private to plan/.

#include <cstdint>
#include <span>
#include <vector>

#include "algorithm/schedule/schedule.hpp"

namespace anyccl {

/// One entry of a send: what a peer may read.
struct Message {
  Rank peer{0};
  std::uint32_t step = 0, piece = 0, publication = 0, offset = 0;
};
/// One entry of a receive.
struct Receipt {
  Rank peer{0};
  std::uint32_t step = 0, piece = 0, tick = 0;
};

/// The messages of one rank, by peer and then in step order, and how many publications and ticks
/// they make.
struct Matching {
  std::vector<Message> sent = {};
  std::vector<Receipt> received = {};
  std::uint32_t publications = 0, ticks = 0, widest = 0;

  std::span<const Message> sent_to(Rank peer) const;
  std::span<const Receipt> received_from(Rank peer) const;
  /// This matching with no messages but those from and to `peer`. The numbers of publications and
  /// ticks stay those with all peers.
  Matching with(Rank peer) const;
};
Matching matching_of(const Schedule& schedule);

/// A personalised send of a v-form makes one publication per reader, so that none carries bytes
/// whose number its reader does not know.
bool splits(const Schedule& schedule, const Step& send);
/// The origins of `pieces` pieces of the slice from piece `first` on.
std::vector<Origin> origins_of(const Schedule& schedule, const Slice& slice, std::size_t first,
                               std::size_t pieces = 1);
/// The origins of the whole publication that piece k of a send is in.
std::vector<Origin> publication_of(const Schedule& schedule, const Step& send, std::size_t k);

}  // namespace anyccl
