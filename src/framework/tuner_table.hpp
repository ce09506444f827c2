#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/question.hpp"

namespace anyccl {

/// Measurements to choose algorithms by: the rows that `anyccl perf --json` writes.
class TunerTable {
 public:
  /// Errors: system_error (no such file), invalid_argument (not such rows), naming file and row.
  static Result<TunerTable> read(const std::string& file);
  static Result<TunerTable> parse(const std::string& text, const std::string& file);

  /// What `algorithm` takes, in us: measured with as many ranks over the same kind of transport,
  /// and interpolated between the sizes next to `question.bytes`. Absent: it was not measured.
  std::optional<double> time(const Algorithm& algorithm, const Question& question) const;
  /// Differs where the text does.
  std::uint64_t hash() const { return hash_; }

 private:
  struct Row {
    std::string algorithm;  // "all_reduce/ring"
    int ranks = 0;
    bool network = false;
    double bytes = 0, us = 0;  // bytes as in Question
  };
  std::vector<Row> rows_;  // ascending in bytes
  std::uint64_t hash_ = 0;
};

}  // namespace anyccl
