#include "adapter/c/coded.hpp"

#include <algorithm>
#include <new>

#include "adapter/exchange.hpp"
#include "base/error.hpp"

namespace anyccl {
namespace {

/// A part of an all_reduce that ranks compare.
struct Asked {
  std::uint64_t count;
  std::uint32_t dtype, op;
  bool operator==(const Asked&) const = default;
};

Asked asked(const Call& call) {
  return {call.count, static_cast<std::uint32_t>(call.dtype), static_cast<std::uint32_t>(call.op)};
}

std::string describe(const Asked& asked) {
  CallRecord record;
  record.collective = static_cast<std::uint8_t>(Collective::all_reduce);
  record.count = asked.count;
  record.dtype = static_cast<std::uint8_t>(asked.dtype);
  record.op = static_cast<std::uint8_t>(asked.op);
  return describe(record);
}

}  // namespace

CodedAllReduce::~CodedAllReduce() {
  static_cast<void>(destroy());
}

Result<bool> CodedAllReduce::uses_codec(DType dtype) const {
  ANYCCL_CHECK(check_codec_type(codec_, dtype));
  return is_coded_[place_of(dtype)];
}

Status CodedAllReduce::destroy() {
  exchange_ = nullptr;
  Status first;
  for (Group* const group : {&all_, &across_, &host_}) {
    anycclComm_t const comm = std::exchange(group->handle, nullptr);
    if (comm != nullptr && anycclCommDestroy(comm) != anycclSuccess && first.ok())
      first = error(Code::invalid_usage, "{}", anycclGetLastError(nullptr));
  }
  return failure_.ok() ? first : Status();  // a failure was an error of a call
}

Status CodedAllReduce::check(const Call& call) const {
  ANYCCL_CHECK(check_codec_type(codec_, call.dtype));
  if (call.op != ReduceOp::sum && call.op != ReduceOp::avg)
    return error(Code::unsupported, "operator {} with codec {}: a coded AllReduce has sum and avg",
                 static_cast<int>(call.op), info_of(codec_).name);
  ANYCCL_CHECK(need_vector(call.input, call.count, "sendbuff"));
  ANYCCL_CHECK(need_vector(call.output, call.count, "recvbuff"));
  const std::size_t bytes = call.count * bytes_of(call.dtype);
  if (call.input != call.output && overlap(call.input, bytes, call.output, bytes))
    return error(Code::invalid_argument, "sendbuff and recvbuff overlap and are not equal");
  return {};
}

/// All ranks of the group have made the same call.
Status CodedAllReduce::agree(const Group& group, const Call& call) const {
  if (group.handle == nullptr) return {};
  ANYCCL_TRY(const std::vector<Asked> all, exchange_with_all(*group.handle->comm, asked(call)));
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i] != all[0])
      return error(Code::invalid_usage, "rank {} called coded {}, but rank {} {}", group.ranks[0],
                   describe(all[0]), group.ranks[i], describe(all[i]));
  return {};
}

Status CodedAllReduce::run(const Call& call) {
  const std::lock_guard lock(mutex_);
  ANYCCL_CHECK(failure_);
  ANYCCL_CHECK(check(call));
  const auto body = [&]() -> Status {
    ANYCCL_CHECK(agree(all_, call));
    if (all_.handle == nullptr) {
      ANYCCL_CHECK(agree(host_, call));
      ANYCCL_CHECK(agree(across_, call));
    }
    if (call.count == 0) return {};
    return is_coded_[place_of(call.dtype)] ? run_between_hosts(call) : all_.handle->comm->run(call);
  };
  Status status;
  try {
    status = body();
  } catch (const std::bad_alloc&) {
    status = error(Code::system_error, "there is no memory for a coded {}", describe(asked(call)));
  }
  if (!status.ok()) fail(status);
  return status;
}

/// Others may wait in another group for a rank that waits in none any more.
void CodedAllReduce::fail(const Status& why) {
  failure_ = why;
  for (const Group* const group : {&all_, &across_, &host_})
    if (group->handle != nullptr) group->handle->comm->abort(why);
}

/// sums_ = this rank's slice, summed over the host.
Status CodedAllReduce::add_in_host(const Call& call, std::vector<std::size_t>& counts,
                                   std::vector<std::size_t>& firsts) {
  const std::size_t me = uindex(host_.handle->comm->rank());
  sums_.resize(std::max(sums_.size(), counts[me]));
  Call sum;
  sum.collective = Collective::reduce_scatter_v;
  sum.count = counts[me];
  sum.input = call.input;
  if (call.dtype != DType::f32) {
    wide_.resize(std::max(wide_.size(), call.count));
    kernels_.codecs->widen[call.dtype == DType::bf16 ? 1 : 2](wide_.data(), call.input, call.count);
    sum.input = reinterpret_cast<const std::byte*>(wide_.data());
  }
  sum.output = reinterpret_cast<std::byte*>(sums_.data());
  sum.send_counts = counts.data();
  sum.send_displs = firsts.data();
  return host_.handle->comm->run(sum);
}

Status CodedAllReduce::run_between_hosts(const Call& call) {
  const auto divisor = static_cast<std::uint32_t>(call.op == ReduceOp::avg ? size_ : 1);
  const CodecVector x{const_cast<std::byte*>(call.input), call.count, call.dtype};
  const CodecVector y{call.output, call.count, call.dtype};
  if (host_.handle == nullptr) return exchange_->run(x, y, divisor);

  std::vector<std::size_t> counts(host_.ranks.size()), firsts(host_.ranks.size(), call.count);
  const std::size_t grains = (call.count + kCodecGrain - 1) / kCodecGrain;
  const auto slices = static_cast<std::size_t>(slices_);
  for (std::size_t s = 0; s < slices; ++s) {
    firsts[s] = std::min(call.count, grains * s / slices * kCodecGrain);
    counts[s] = std::min(call.count, grains * (s + 1) / slices * kCodecGrain) - firsts[s];
  }
  ANYCCL_CHECK(add_in_host(call, counts, firsts));
  const std::size_t me = uindex(host_.handle->comm->rank());
  std::byte* const mine = call.output + firsts[me] * bytes_of(call.dtype);
  if (exchange_ != nullptr)
    ANYCCL_CHECK(
        exchange_->run({sums_.data(), counts[me]}, {mine, counts[me], call.dtype}, divisor));
  Call all;
  all.collective = Collective::all_gather_v;
  all.dtype = call.dtype;
  all.count = counts[me];
  all.input = mine;
  all.output = call.output;
  all.recv_counts = counts.data();
  all.recv_displs = firsts.data();
  return host_.handle->comm->run(all);
}

}  // namespace anyccl
