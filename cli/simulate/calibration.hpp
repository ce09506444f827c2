#pragma once

#include <string>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// What a message of b bytes takes from one rank to another one, alpha_s + b * beta_s, for sizes up
/// to a limit at which the library changes its protocol.
struct CostSegment {
  double most_bytes = 0;  ///< Infinite in the last segment.
  double alpha_s = 0;
  double beta_s = 0;  ///< A byte.
};

/// A class of links, such as shared memory or TCP.
struct LinkCosts {
  std::string name;                   ///< Its transport's: "shm".
  std::vector<CostSegment> segments;  ///< Ascending, at least one.
  double overhead_s = 0;              ///< What each message occupies its sender, and its receiver.
  double residual = 0;                ///< The fit's: the root of the mean squared relative errors.
  int points = 0;                     ///< Sizes that were measured.

  const CostSegment& at(double bytes) const;
  /// What a message of so many bytes takes, by the segment of its size.
  double seconds(double bytes) const { return at(bytes).alpha_s + at(bytes).beta_s * bytes; }
};

/// How many times as long a collective takes as its messages and additions one by one, for one size
/// of the vector: both sides begin with cold caches and unequally late, and share the machine with
/// other programs.
struct CollectiveFactor {
  double bytes = 0, factor = 1;
};

/// What a byte takes a core that reads, or writes, memory of which it uses `bytes` in turns: the
/// smaller, the nearer the cache that holds it.
struct MemoryRate {
  double bytes = 0;
  double read_s = 0, write_s = 0;
};

/// The constants of a machine, fitted to measurements: what `anyccl tune --calibrate` writes.
struct Calibration {
  std::string host, cpu, date, version;
  std::vector<LinkCosts> links;
  /// Adding k vectors of b bytes into one takes b * (k * read_s + write_s); copying, b * copy_s.
  double read_s = 0, write_s = 0, copy_s = 0;
  double reduce_residual = 0;
  /// By ascending sizes, of one core alone and of each core while all do the same; empty: not
  /// measured.
  std::vector<MemoryRate> memory_alone, memory_shared;
  int cores = 1;
  double memory_bytes_per_s = 0;          ///< That all cores together copy; 0: not measured.
  double hand_over_s = 0;                 ///< From one rank to another one on the same core.
  double load = 0;                        ///< Programs that wanted a core meanwhile, on average.
  std::string factors_link;               ///< The link that `factors` are of.
  std::vector<CollectiveFactor> factors;  ///< By ascending sizes; empty: not measured.
  /// Those of ranks that share cores, which also lose what caches held; empty: `factors`.
  std::vector<CollectiveFactor> factors_in_turns;

  /// The class of this name; null if there is none.
  const LinkCosts* find(const std::string& link) const;
  /// Between two sizes along a line over the logarithms; beyond them that of the last one; 1 if
  /// there are none for this link. `in_turns`: there are more ranks than cores.
  double factor_at(const std::string& link, double bytes, bool in_turns) const;
  /// Between two sizes along a line over the logarithms. `shared`: all cores do the same. There are
  /// some.
  MemoryRate memory_at(double bytes, bool shared) const;
  /// "shm 4 %, tcp 9 %, additions 3 %"
  std::string residuals() const;
};

/// From JSON with "format": "anyccl.calibration/1". `name`: the file, for messages. Errors:
/// invalid_argument naming it, the key, and what to do.
Result<Calibration> read_calibration(const std::string& text, const std::string& name);
std::string to_json(const Calibration& calibration);

}  // namespace anyccl::cli
