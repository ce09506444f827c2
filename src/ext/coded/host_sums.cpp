#include "ext/coded/host_sums.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace anyccl {

HostSums::HostSums(std::shared_ptr<Comm> comm, int slices, const CodecKernels& kernels)
    : comm_(std::move(comm)), slices_(static_cast<std::size_t>(slices)), kernels_(kernels) {}

void HostSums::begin(const Call& call, std::size_t piece_elements) {
  call_ = call;
  piece_elements_ = piece_elements;
  const auto ranks = static_cast<std::size_t>(comm_->size());
  firsts_.assign(ranks, call.count);
  counts_.assign(ranks, 0);
  const std::size_t grains = (call.count + kCodecGrain - 1) / kCodecGrain;
  for (std::size_t s = 0; s < slices_; ++s) {
    firsts_[s] = std::min(call.count, grains * s / slices_ * kCodecGrain);
    counts_[s] = std::min(call.count, grains * (s + 1) / slices_ * kCodecGrain) - firsts_[s];
  }
  const std::size_t longest = *std::max_element(counts_.begin(), counts_.end());
  pieces_ = (longest + piece_elements - 1) / piece_elements;
  sums_.resize(std::max(sums_.size(), counts_[me()]));
  if (call.dtype != DType::f32) wide_.resize(std::max(wide_.size(), call.count));
}

CodecVector HostSums::result() const {
  return {call_.output + firsts_[me()] * bytes_of(call_.dtype), counts_[me()], call_.dtype};
}

/// Where a piece of each slice lies.
void HostSums::set_parts(std::size_t piece) {
  part_firsts_ = firsts_;
  part_counts_ = counts_;
  for (std::size_t s = 0; s < counts_.size(); ++s) {
    const std::size_t before = std::min(counts_[s], piece * piece_elements_);
    part_firsts_[s] += before;
    part_counts_[s] = std::min(piece_elements_, counts_[s] - before);
  }
}

/// Issues the call; if there is only one piece, which has nothing to run beside, runs it to its
/// end, and `operation` is null.
Status HostSums::start(const Call& call, std::shared_ptr<Operation>& operation) {
  operation = nullptr;
  if (pieces_ == 1) return comm_->run(call);
  ANYCCL_TRY(operation, comm_->issue(call));
  return {};
}

Status HostSums::add(std::size_t piece) {
  set_parts(piece);
  Call sum;
  sum.collective = Collective::reduce_scatter_v;
  sum.count = part_counts_[me()];
  sum.input = call_.input;
  if (call_.dtype != DType::f32) {
    const auto widen = kernels_.widen[call_.dtype == DType::bf16 ? 1 : 2];
    for (std::size_t s = 0; s < slices_; ++s)
      widen(wide_.data() + part_firsts_[s], call_.input + part_firsts_[s] * bytes_of(call_.dtype),
            part_counts_[s]);
    sum.input = reinterpret_cast<const std::byte*>(wide_.data());
  }
  if (sum.count > 0)
    sum.output = reinterpret_cast<std::byte*>(sums_.data() + piece * piece_elements_);
  sum.send_counts = part_counts_.data();
  sum.send_displs = part_firsts_.data();
  return start(sum, adds_[piece % 2]);
}

Status HostSums::wait_for_sum(std::size_t piece) {
  const std::shared_ptr<Operation>& sum = adds_[piece % 2];
  return sum == nullptr ? Status() : comm_->wait(*sum);
}

Status HostSums::start_gather(std::size_t piece) {
  set_parts(piece);
  Call all;
  all.collective = Collective::all_gather_v;
  all.dtype = call_.dtype;
  all.count = part_counts_[me()];
  all.input = call_.output + part_firsts_[me()] * bytes_of(call_.dtype);
  all.output = call_.output;
  all.recv_counts = part_counts_.data();
  all.recv_displs = part_firsts_.data();
  return start(all, gathers_);
}

Status HostSums::finish() {
  return gathers_ == nullptr ? Status() : comm_->wait(*gathers_);
}

}  // namespace anyccl
