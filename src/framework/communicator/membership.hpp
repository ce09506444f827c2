#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "framework/collective/planning_facts.hpp"
#include "platform/probe/oversubscription.hpp"
#include "platform/transport/transport.hpp"

namespace anyccl {

/// Slots per bank of every communicator of `size` ranks.
std::uint32_t slots_for(int size);
/// Bytes that a slot holds itself: 2 KiB in small communicators, less in large ones.
std::size_t line_bytes_for(int size);
/// Of each rank's staging ring. On one host less with more ranks, because all rings together take
/// room from the last-level cache.
std::size_t ring_bytes_for(int size, bool network);

/// Everything a communicator is made of.
struct Membership : PlanningFacts {
  std::vector<std::string> names;  ///< "rank 2 (host n7, pid 4711)", for messages.
  std::vector<std::unique_ptr<Transport>> transports;
  int cores_each = 1;  ///< Of this rank, as Placement has it.
  WaitMode waits = WaitMode::balanced;
  probe::OversubscriptionMonitor::Registration registration;  ///< Among the ranks of this host.
};

}  // namespace anyccl
