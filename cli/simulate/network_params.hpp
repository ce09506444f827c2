#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"

namespace anyccl::cli {

/// The parameters of a network, as "k=16,taper=4". The first mistake is kept until status() is
/// asked.
class NetworkParams {
 public:
  /// `words`: names and values as they were written.
  NetworkParams(std::string kind, std::map<std::string, std::string> words);

  /// Reads a parameter, which then counts as asked for, and puts the value that is used into
  /// text(): `otherwise`, if it is not given or wrong. status() has the first wrong one.
  std::uint32_t take_number(std::string_view name, std::uint32_t otherwise, std::uint32_t least,
                            std::uint32_t most);
  double take_real(std::string_view name, double otherwise);
  /// As "4x4x2".
  std::vector<std::uint32_t> take_dims(std::string_view name, std::vector<std::uint32_t> otherwise);
  /// Errors: invalid_argument naming a value that is none, or a parameter that nobody asked for.
  Status status() const;
  /// The kind with the values of all parameters that were asked for.
  std::string text() const;
  const std::string& kind() const { return kind_; }

 private:
  std::string take(std::string_view name);
  void wrong(std::string_view name, std::string_view value, std::string_view allowed);
  std::string kind_;
  std::map<std::string, std::string> words_;  ///< Not asked for yet.
  std::vector<std::string> names_;            ///< Asked for.
  std::string values_;
  Status status_;
};

/// What a network of this size may have at most: a million ends.
inline constexpr std::uint32_t kMostEnds = 1U << 20;

}  // namespace anyccl::cli
