#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/tuner.hpp"
#include "platform/probe/oversubscription.hpp"
#include "platform/transport.hpp"

namespace anyccl {

/// Slots per bank of every communicator of `size` ranks.
std::uint32_t slots_for(int size);
/// Bytes that a slot holds itself: 2 KiB in small communicators, less in large ones.
std::size_t line_bytes_for(int size);
/// Of each rank's staging ring. On one host less with more ranks, because all rings together take
/// room from the last-level cache.
std::size_t ring_bytes_for(int size, bool network);

/// Everything a communicator is made of.
struct Membership {
  Rank rank{0};
  int size = 1;
  std::vector<int> near_of;        ///< As Placement has it.
  std::vector<std::string> names;  ///< "rank 2 (host n7, pid 4711)", for messages.
  std::vector<std::unique_ptr<Transport>> transports;
  TunerPolicy policy;                   ///< Of algorithms.
  std::size_t line_bytes = kLineBytes;  ///< Publications of at most so many bytes lie in a slot.
  bool only_lines = false;     ///< ANYCCL_PROTO=LL, LL128: in tiles that fit a slot where they can.
  bool network = false;        ///< Some pair of ranks, not only this one's, talks over a network.
  int ranks_per_core = 1;      ///< As Placement has it.
  int cores_each = 1;          ///< The same, of this rank.
  std::size_t ring_bytes = 0;  ///< Of the staging ring.
  probe::OversubscriptionMonitor::Registration registration;  ///< Among the ranks of this host.
};

}  // namespace anyccl
