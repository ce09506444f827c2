#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/anyccl.h"
#include "anyccl/status.hpp"

namespace anyccl::cli {

/// Owns one rank's communicator. Errors name the rank, the call and the library's reason.
class Comm {
 public:
  /// Joins the job that the environment describes.
  static Result<Comm> join();
  /// All ranks of a communicator within this process; use each from a thread of its own.
  static Result<std::vector<Comm>> make_all(int ranks);

  Comm(Comm&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), rank_(other.rank_), ranks_(other.ranks_) {}
  Comm& operator=(Comm&&) = delete;
  ~Comm();

  /// The ranks of one color, in their order; none below 0. Collective.
  Result<std::optional<Comm>> split(int color) const;

  anycclComm_t get() const { return handle_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  Status check(anycclResult_t result, const char* call) const;
  Status barrier() const;
  /// Replaces each number by the largest, or by the sum, over all ranks.
  Status max(std::span<std::int64_t> numbers) const { return reduce(numbers, anycclMax); }
  Status sum(std::span<std::int64_t> numbers) const { return reduce(numbers, anycclSum); }
  /// How the last collective ran, such as "all_reduce/two_shot Simple shm".
  Result<std::string> last_plan() const;
  /// From now on its collective uses this algorithm; null: the usual one. On all ranks alike.
  void use(const Algorithm* algorithm) const;
  /// Makes the other ranks' calls fail instead of waiting for this one.
  void abort();

 private:
  explicit Comm(anycclComm_t handle) : handle_(handle) {}
  static Result<Comm> wrap(anycclComm_t handle);
  Status reduce(std::span<std::int64_t> numbers, anycclRedOp_t redop) const;

  anycclComm_t handle_;
  int rank_ = 0, ranks_ = 1;
};

}  // namespace anyccl::cli
