#pragma once
// The part of a coded AllReduce that stays inside a host.

#include <memory>
#include <vector>

#include "framework/communicator/communicator.hpp"
#include "platform/reduce/codec.hpp"

namespace anyccl {

/// Ranks of a host add up in f32 what they have. Each of the first of them gets a slice of the sum;
/// when it is summed over hosts, too, all get all slices. Slices are summed and gathered a piece at
/// a time, so that other pieces are between hosts meanwhile. All ranks of the host call the same,
/// in the same order.
///
/// Threads: one at a time.
class HostSums {
 public:
  HostSums(std::shared_ptr<Comm> comm, int slices, const CodecKernels& kernels);
  /// An AllReduce, in pieces of so many elements of each slice; a multiple of kCodecGrain.
  void begin(const Call& call, std::size_t piece_elements);
  /// How many pieces the longest slice has.
  std::size_t pieces() const { return pieces_; }
  /// This rank's slice: of the sums of this host, and of the result. Empty, if it has none.
  CodecVector sums() { return {sums_.data(), counts_[me()], DType::f32}; }
  CodecVector result() const;

  /// Starts to add up a piece.
  Status add(std::size_t piece);
  /// Its sum is there.
  Status wait_for_sum(std::size_t piece);
  /// Starts to give all ranks that piece of the result.
  Status start_gather(std::size_t piece);
  /// All of the result is there.
  Status finish();

 private:
  std::size_t me() const { return uindex(comm_->rank()); }
  void set_parts(std::size_t piece);
  Status start(const Call& call, std::shared_ptr<Operation>& operation);

  const std::shared_ptr<Comm> comm_;
  const std::size_t slices_;
  const CodecKernels& kernels_;
  Call call_;
  std::size_t piece_elements_ = 0, pieces_ = 0;
  std::vector<std::size_t> firsts_, counts_;  // of the slices
  std::vector<std::size_t> part_firsts_,
      part_counts_;  // of the piece that set_parts() was called for
  std::vector<float> wide_, sums_;
  std::shared_ptr<Operation> adds_[2], gathers_;  // the last ones
};

}  // namespace anyccl
