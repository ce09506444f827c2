#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/traces.hpp"

namespace anyccl::cli {

/// How the clock of a host was brought to that of the first one.
struct HostClock {
  std::string host;
  std::int64_t ahead_ns = 0;  ///< Was subtracted from its times.
  /// The true difference is so near; negative: it is not known, and the hosts' real times were
  /// taken to be equal.
  std::int64_t error_ns = 0;
};

/// Changes all times to those of the clock of the first trace's host; one clock per host.
///
/// No result of an operation can be there before what it is made of has begun: a receive ends after
/// its send begins, and an AllReduce ends nowhere before it has begun everywhere. Each operation of
/// ranks on two hosts thus bounds the difference of their clocks, an AllReduce from both sides, a
/// receive from one. The tightest bounds of all operations are about twice as far apart as the
/// fastest one takes, and the difference is taken to be in their middle. Clocks that go at
/// different rates during the trace, which those that NTP or PTP keeps do not, are beyond that.
std::vector<HostClock> align(std::vector<RankTrace>& traces);

}  // namespace anyccl::cli
