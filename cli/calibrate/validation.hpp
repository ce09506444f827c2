#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulate/machine.hpp"

namespace anyccl::cli {

/// A time that was measured, beside the one that the model gives.
struct Prediction {
  std::string algorithm;  ///< "all_reduce/ring"
  int ranks = 0;
  std::size_t bytes = 0;          ///< The vector's.
  double measured_s = 0;          ///< The median of the turns' medians.
  double least_s = 0, p99_s = 0;  ///< Within a turn, in the median of the turns.
  double predicted_s = 0;
  double error() const { return predicted_s / measured_s - 1; }
};

/// Whether the sizes of its rows are those of a vector, and not of blocks.
bool can_predict(std::string_view operation);

/// Predicts each row of a file of `anyccl tune` or `anyccl perf --json`, all ranks on one host.
/// Errors: invalid_argument naming an unknown algorithm or a collective that can_predict() refuses;
/// those of simulate_sizes(). Throws Json::exception for a row without a field.
Result<std::vector<Prediction>> predict(const std::string& rows, const Machine& machine);

/// The factors of calibration, from predictions without any: for each size the median over all
/// algorithms and numbers of ranks from `least_ranks` to `most_ranks`.
std::vector<CollectiveFactor> factors_of(const std::vector<Prediction>& predictions,
                                         int least_ranks, int most_ranks);

/// One line for each, and sums: of those with up to `fitted_ranks` ranks, and of those that are
/// held out.
std::string to_table(const std::vector<Prediction>& predictions, int fitted_ranks);
std::string to_json(const std::vector<Prediction>& predictions);

}  // namespace anyccl::cli
