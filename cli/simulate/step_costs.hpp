#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "simulate/machine.hpp"
#include "simulate/programs.hpp"

namespace anyccl::cli {

/// What steps and messages cost by the constants of a machine, which outlives it.
///
/// With a calibration, a message inside a host has no link: its sender copies it, its readers read
/// it, and both are work of a core. Alpha + beta * b is divided so that a message that meets no
/// other one takes just that: the overhead and the copy are the sender's, the overhead and the rest
/// of beta are the receiver's, and the rest of alpha is its way.
class StepCosts {
 public:
  /// ranks_per_host: 0: all are on one. bytes: of the vector, or of a block.
  StepCosts(const Machine& machine, std::uint32_t ranks, std::uint32_t ranks_per_host,
            double bytes);

  struct Departure {
    double busy_s = 0;     ///< The sender's, before the message leaves; 0 without a calibration.
    double after_s = 0;    ///< The sender's, afterwards.
    double latency_s = 0;  ///< Before its flow begins, or until it is there.
    double most_bytes_per_s = std::numeric_limits<double>::infinity();
    bool by_network = true;
  };
  /// is_first: of a send's messages inside the host, which share one copy.
  Departure departure(bool inside, bool is_first, double bytes) const;
  /// What a receive or an addition takes of its rank, once all is there. inside: messages from this
  /// host.
  double work_s(std::uint32_t inside, std::uint32_t between, std::uint32_t additions,
                double bytes) const;

  std::uint32_t host(std::uint32_t rank) const { return rank / ranks_per_host_; }
  std::uint32_t hosts() const { return hosts_; }
  bool calibrated() const { return machine_.calibration != nullptr; }
  bool inside(std::uint32_t a, std::uint32_t b) const { return calibrated() && host(a) == host(b); }
  /// How many a host has; 0: as many as it has ranks.
  std::uint32_t cores() const { return cores_; }
  double hand_over_s() const { return hand_over_s_; }

 private:
  double copied_s(const CostSegment& segment) const;
  const Machine& machine_;
  const LinkCosts *inside_ = nullptr, *between_ = nullptr;
  std::uint32_t ranks_per_host_ = 1, hosts_ = 1, cores_ = 0;
  double hand_over_s_ = 0;
  double factor_ = 1;  ///< On what happens inside a host: see CollectiveFactor.
  double shared_ = 1;  ///< How much longer a byte takes, as all cores use the memory at once.
};

}  // namespace anyccl::cli
