#pragma once
// The tuner chooses by measurements of `anyccl perf` and `anyccl tune`, which are read and looked
// up here.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "framework/tuning/tuner_query.hpp"

namespace anyccl {

/// Measurements to choose algorithms by.
class TunerTable {
 public:
  /// `name`: what people know it by.
  explicit TunerTable(std::string name) : name_(std::move(name)) {}
  /// The rows that `anyccl perf --json` and `anyccl tune` write.
  /// Errors: system_error (no such file), invalid_argument (not such rows), naming file and row.
  static Result<TunerTable> read(const std::string& file);
  /// Leaves out rows of algorithms that are not known here, and of calls in place. `file`: the
  /// name of the table.
  static Result<TunerTable> parse(const std::string& text, const std::string& file);

  /// Where there are several times for the same, the shortest counts.
  void add(const Algorithm& algorithm, int ranks, bool network, double bytes, double us);
  /// The time of `algorithm` in us: measured with as many ranks over the same kind of transport,
  /// and interpolated between the sizes next to `query.bytes`. Below the least size it is the time
  /// of that, beyond the largest one it grows with the bytes. Absent: it was not measured.
  std::optional<double> measured_us(const Algorithm& algorithm, const TunerQuery& query) const;
  const std::string& name() const { return name_; }
  /// Differs where the text that was parsed does.
  std::uint64_t hash() const { return hash_; }

 private:
  using TunerCell = std::tuple<const Algorithm*, int, bool>;   // ranks; over a network
  std::map<TunerCell, std::map<double, double>> us_by_bytes_;  // bytes as in TunerQuery
  std::string name_;
  std::uint64_t hash_ = 0;
};

}  // namespace anyccl
