#pragma once

#include "simulate/calibration.hpp"
#include "simulate/host_moves.hpp"
#include "simulate/host_plans.hpp"

namespace anyccl::cli {

/// What the steps of plans cost on one host. A core reads and writes memory as fast as the cache
/// that holds it allows: each kind of memory by how many bytes the core touches before it comes to
/// the same place again.
class HostCosts {
 public:
  /// Computes the costs of `call`, which `plans.bind()` returned. `link`: of the calibration.
  HostCosts(const Calibration& calibration, const LinkCosts& link, const HostPlans& plans,
            const HostPlans::Bound& call);

  /// `shared`: another core works at the same time.
  double seconds(const Moved& moved, bool shared) const;
  /// To write the input and read the output of a call, as a program does between calls.
  double touch_s(bool shared) const;
  /// From one rank to the next one on a core; 0 where each has one of its own.
  double turn_s() const { return turn_s_; }
  std::uint32_t cores() const { return cores_; }

 private:
  struct Rates {
    double read_s = 0, write_s = 0;
  };
  struct Kinds {
    Rates user, scratch, ring, line;
  };
  Kinds kinds_of(const Calibration& calibration, const LinkCosts& link, const HostPlans& plans,
                 const HostPlans::Bound& call, bool shared) const;

  std::uint32_t cores_ = 1;
  double factor_ = 1, overhead_s_ = 0, turn_s_ = 0, user_bytes_ = 0;
  Kinds alone_, shared_;
};

}  // namespace anyccl::cli
