#pragma once
// Dispatch and combine of mixture-of-experts layers (anyccl.hpp includes this).

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "anyccl/anyccl.h"
#include "anyccl/communicator.hpp"
#include "anyccl/group.hpp"
#include "anyccl/status.hpp"
#include "anyccl/types.hpp"
#include "anyccl/view.hpp"

namespace anyccl {

/// What all ranks of a routing have in common.
struct RoutingConfig {
  /// Experts of all ranks: rank r of n has the experts / n experts from r * experts / n on.
  int experts = 0;
  /// Experts of each token.
  int choices = 1;
  /// An expert takes the first `capacity` tokens of each rank, and the others are dropped; 0: all.
  std::size_t capacity = 0;
  /// Every expert has `capacity` rows of each rank, so that sizes do not depend on the tokens.
  bool padded = false;
};

/// Where tokens go. Serves any number of dispatch() and combine() calls, one at a time, forwards
/// and backwards. All three calls are collective, return when they are done, and cannot be in a
/// group.
class Routing {
 public:
  /// experts[token * choices + k] is the k-th expert of a token, or -1: none. The number of tokens
  /// is each rank's own.
  ///
  /// Errors: invalid_argument, naming the token, or what does not fit; invalid_usage, naming a
  ///         difference between ranks, of which not all are found.
  static Result<Routing> create(Communicator& comm, std::span<const int> experts,
                                const RoutingConfig& config) {
    Routing routing;
    const std::size_t choices = config.choices < 1 ? 1 : static_cast<std::size_t>(config.choices);
    if (experts.size() % choices != 0)
      return detail::refused(Code::invalid_argument, std::to_string(experts.size()) +
                                                         " choices are not " +
                                                         std::to_string(choices) + " per token");
    routing.tokens_ = experts.size() / choices;
    routing.choices_ = choices;
    routing.experts_here_ = static_cast<std::size_t>(config.experts > 0 ? config.experts : 0) /
                            static_cast<std::size_t>(comm.size() > 0 ? comm.size() : 1);
    const Status status = detail::status_of(
        anycclRoutingCreate(&routing.handle_, routing.tokens_, config.choices, experts.data(),
                            config.experts, config.capacity, config.padded ? 1 : 0, comm.handle()),
        comm.handle());
    if (!status.ok()) return status;
    return routing;
  }

  Routing() = default;
  Routing(Routing&& other) noexcept { *this = std::move(other); }
  Routing& operator=(Routing&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(tokens_, other.tokens_);
    std::swap(choices_, other.choices_);
    std::swap(experts_here_, other.experts_here_);
    return *this;
  }
  Routing(const Routing&) = delete;
  Routing& operator=(const Routing&) = delete;
  ~Routing() { static_cast<void>(anycclRoutingDestroy(handle_)); }
  anycclRouting_t handle() const { return handle_; }

  std::size_t tokens() const { return tokens_; }
  /// Rows of all experts of this rank, with padding.
  std::size_t rows() const {
    std::size_t rows = 0;
    static_cast<void>(anycclRoutingRows(handle_, &rows, nullptr, nullptr));
    return rows;
  }
  /// How many rows of each expert of this rank are tokens.
  std::vector<std::size_t> tokens_of_experts() const {
    std::size_t rows = 0;
    std::vector<std::size_t> counts(experts_here_);
    static_cast<void>(anycclRoutingRows(handle_, &rows, counts.data(), nullptr));
    return counts;
  }
  /// How many choices of this rank's tokens are dropped.
  std::size_t dropped() const {
    std::size_t rows = 0, dropped = 0;
    static_cast<void>(anycclRoutingRows(handle_, &rows, nullptr, &dropped));
    return dropped;
  }

  /// `rows` become the tokens for this rank's experts, one expert after the other, each in the
  /// order of ranks and of their tokens; padding is zero.
  ///
  /// Shapes: tokens() * width and rows() * width elements of one dtype; width is equal on all
  ///         ranks. Not in place.
  Status dispatch(Communicator& comm, View tokens, View rows) {
    const Result<std::size_t> width = width_of(tokens, rows);
    if (!width.ok()) return width.status();
    return detail::status_of(
        anycclDispatch(tokens.data, rows.data, *width, static_cast<anycclDataType_t>(tokens.dtype),
                       handle_, comm.handle()),
        comm.handle());
  }
  /// The way back: each of `tokens` becomes the sum over its choices of weights[token * choices +
  /// k] times the row that its expert has made of it; a dropped choice adds nothing. Without
  /// `weights` all are 1.
  ///
  /// Shapes: as dispatch(), and tokens() * choices weights of the same dtype.
  Status combine(Communicator& comm, View rows, View weights, View tokens) {
    const Result<std::size_t> width = width_of(tokens, rows);
    if (!width.ok()) return width.status();
    if (weights.count != 0 &&
        (weights.count != tokens_ * choices_ || weights.dtype != tokens.dtype))
      return detail::refused(Code::invalid_argument, std::to_string(weights.count) +
                                                         " weights for " +
                                                         std::to_string(tokens_ * choices_) +
                                                         " choices, or of another type");
    return detail::status_of(
        anycclCombine(rows.data, weights.count == 0 ? nullptr : weights.data, tokens.data, *width,
                      static_cast<anycclDataType_t>(tokens.dtype), handle_, comm.handle()),
        comm.handle());
  }

 private:
  Result<std::size_t> width_of(const View& tokens, const View& rows) const {
    const std::size_t here = this->rows();
    const std::size_t width = tokens_ > 0 ? tokens.count / tokens_
                              : here > 0  ? rows.count / here
                                          : 0;
    if (tokens.count == tokens_ * width && rows.count == here * width && tokens.dtype == rows.dtype)
      return width;
    return detail::refused(Code::invalid_argument,
                           std::to_string(tokens.count) + " elements of " +
                               std::to_string(tokens_) + " tokens and " +
                               std::to_string(rows.count) + " of " + std::to_string(here) +
                               " rows are not of one width, or of different types");
  }

  anycclRouting_t handle_ = nullptr;
  std::size_t tokens_ = 0, choices_ = 1, experts_here_ = 0;
};

}  // namespace anyccl
