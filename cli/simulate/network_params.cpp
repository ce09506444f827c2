#include "simulate/network_params.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <utility>

#include "base/error.hpp"

namespace anyccl::cli {

namespace {

template <typename T>
bool reads(std::string_view text, T& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && end == text.data() + text.size();
}

}  // namespace

NetworkParams::NetworkParams(std::string kind, std::map<std::string, std::string> words)
    : kind_(std::move(kind)), words_(std::move(words)) {}

std::string NetworkParams::take(std::string_view name) {
  names_.emplace_back(name);
  const auto word = words_.find(std::string(name));
  if (word == words_.end()) return {};
  std::string value = std::move(word->second);
  words_.erase(word);
  if (value.empty()) wrong(name, value, "a value");
  return value;
}

void NetworkParams::wrong(std::string_view name, std::string_view value, std::string_view allowed) {
  if (status_.ok())
    status_ = error(Code::invalid_argument, "{}: {}={} is not {}", kind_, name, value, allowed);
}

std::uint32_t NetworkParams::take_number(std::string_view name, std::uint32_t otherwise,
                                         std::uint32_t least, std::uint32_t most) {
  std::uint32_t value = otherwise;
  const std::string word = take(name);
  if (!word.empty() && (!reads(word, value) || value < least || value > most)) {
    wrong(name, word, fmt::format("a number from {} to {}", least, most));
    value = otherwise;
  }
  values_ += fmt::format("{}{}={}", values_.empty() ? ":" : ",", name, value);
  return value;
}

double NetworkParams::take_real(std::string_view name, double otherwise) {
  double value = otherwise;
  const std::string word = take(name);
  if (!word.empty() && (!reads(word, value) || !(value > 0))) {
    wrong(name, word, "a number above 0");
    value = otherwise;
  }
  values_ += fmt::format("{}{}={}", values_.empty() ? ":" : ",", name, value);
  return value;
}

std::vector<std::uint32_t> NetworkParams::take_dims(std::string_view name,
                                                    std::vector<std::uint32_t> otherwise) {
  const std::string word = take(name);
  std::vector<std::uint32_t> dims;
  std::uint64_t ends = 1;
  for (std::size_t at = 0; !word.empty() && at <= word.size();) {
    const std::size_t end = std::min(word.find('x', at), word.size());
    std::uint32_t dim = 0;
    if (!reads(std::string_view(word).substr(at, end - at), dim)) dim = 0;
    ends *= dim;
    dims.push_back(dim);
    at = end + 1;
    if (dim == 0 || ends > kMostEnds) {
      wrong(name, word, fmt::format("dimensions such as 4x4x2, with {} places at most", kMostEnds));
      return otherwise;
    }
  }
  if (dims.empty()) dims = std::move(otherwise);
  values_ += fmt::format("{}{}={}", values_.empty() ? ":" : ",", name, fmt::join(dims, "x"));
  return dims;
}

Status NetworkParams::status() const {
  if (!status_.ok() || words_.empty()) return status_;
  if (names_.empty())
    return error(Code::invalid_argument, "{} has no parameters, not {}", kind_,
                 words_.begin()->first);
  return error(Code::invalid_argument, "{} has no parameter {}, but {}", kind_,
               words_.begin()->first, fmt::join(names_, ", "));
}

std::string NetworkParams::text() const {
  return kind_ + values_;
}

}  // namespace anyccl::cli
