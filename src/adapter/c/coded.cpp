#include "adapter/c/coded.hpp"

#include <algorithm>
#include <map>
#include <new>

#include "adapter/c/creation.hpp"
#include "base/config.hpp"
#include "base/error.hpp"
#include "framework/tuning/order_needs.hpp"
#include "framework/tuning/tuner.hpp"
#include "platform/reduce/isa.hpp"

namespace anyccl {
namespace {

/// What ranks must have in common.
template <typename T>
Result<std::vector<T>> of_all(Comm& comm, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  all[uindex(comm.rank())] = mine;
  Call call;
  call.collective = Collective::all_gather;
  call.dtype = DType::u8;
  call.count = sizeof(T);
  call.input = reinterpret_cast<std::byte*>(&all[uindex(comm.rank())]);
  call.output = reinterpret_cast<std::byte*>(all.data());
  ANYCCL_CHECK(comm.run(call));
  return all;
}

struct Terms {
  std::uint8_t codec, everywhere;
  bool operator==(const Terms&) const = default;
};

std::string describe(const Terms& terms) {
  return std::string(info_of(static_cast<Codec>(terms.codec)).name) +
         (terms.everywhere != 0 ? ", everywhere" : "");
}

Status agree_on_terms(Comm& parent, const Terms& mine) {
  ANYCCL_TRY(const std::vector<Terms> all, of_all(parent, mine));
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      return error(Code::invalid_usage, "rank 0 creates a coded AllReduce of {}, but rank {} of {}",
                   describe(all[0]), r, describe(all[r]));
  return {};
}

/// Which sums are coded follows from the placement of ranks, unless each is a host of its own.
Status check_level(const Comm& parent, const std::vector<int>& host_of, Codec codec,
                   bool everywhere) {
  const int level = level_of(parent.membership().policy, nullptr);
  const bool has_one_host = std::ranges::count(host_of, host_of[0]) == parent.size();
  if (level < kMostLevel || everywhere || has_one_host) return {};
  return error(Code::unsupported,
               "level {} of reproducibility with codec {} between hosts: what is coded depends on "
               "which ranks are on which host, unless it is coded everywhere",
               level, info_of(codec).name);
}

/// A part of an all_reduce that ranks compare.
struct Asked {
  std::uint64_t count;
  std::uint8_t dtype, op;
  bool operator==(const Asked&) const = default;
};

Asked asked(const Call& call) {
  return {call.count, static_cast<std::uint8_t>(call.dtype), static_cast<std::uint8_t>(call.op)};
}

std::string describe(const Asked& asked) {
  CallRecord record;
  record.collective = static_cast<std::uint8_t>(Collective::all_reduce);
  record.count = asked.count;
  record.dtype = asked.dtype;
  record.op = asked.op;
  return describe(record);
}

}  // namespace

CodedAllReduce::CodedAllReduce(const Comm& parent, Codec codec, const KernelTable& kernels,
                               bool everywhere)
    : codec_(codec),
      kernels_(kernels),
      me_(index(parent.rank())),
      size_(parent.size()),
      host_of_(static_cast<std::size_t>(parent.size())) {
  if (everywhere)
    for (int r = 0; r < size_; ++r) host_of_[static_cast<std::size_t>(r)] = r;
  else if (parent.membership().network)  // else there is one host, and near_of divides that
    host_of_ = parent.membership().near_of;
}

CodedAllReduce::~CodedAllReduce() {
  static_cast<void>(destroy());
}

Result<std::unique_ptr<CodedAllReduce>> CodedAllReduce::create(Comm& parent, Codec codec,
                                                               bool everywhere,
                                                               const std::string& name) {
  ANYCCL_TRY(const KernelTable* const kernels, best_kernels());
  ANYCCL_TRY(const Config config, read_config());
  everywhere = everywhere || config.wire_everywhere;
  ANYCCL_CHECK(agree_on_terms(parent, {static_cast<std::uint8_t>(codec), everywhere}));
  std::unique_ptr<CodedAllReduce> made(new CodedAllReduce(parent, codec, *kernels, everywhere));
  ANYCCL_CHECK(check_level(parent, made->host_of_, codec, everywhere));
  // Tuning while the program runs promises nothing, and so contradicts any level.
  ANYCCL_CHECK(made->make_groups(parent, name, config.tune_at_start ? -1 : kMostLevel));
  return made;
}

Status CodedAllReduce::make_groups(Comm& parent, const std::string& name, int level) {
  std::map<int, std::vector<int>> hosts;
  for (int r = 0; r < size_; ++r) hosts[host_of_[static_cast<std::size_t>(r)]].push_back(r);
  std::size_t least = hosts.begin()->second.size(), most = least;
  for (const auto& [host, ranks] : hosts) {
    least = std::min(least, ranks.size());
    most = std::max(most, ranks.size());
  }
  slices_ = static_cast<int>(least);
  in_host_ = hosts[host_of_[static_cast<std::size_t>(me_)]];
  const auto place = static_cast<int>(std::ranges::find(in_host_, me_) - in_host_.begin());
  const int host = host_of_[static_cast<std::size_t>(me_)];
  if (most > 1) {
    CommSettings settings;
    settings.level = level;  // so that sums depend neither on the call nor on the slice
    ANYCCL_TRY(CommPtr made, split(parent, host, me_, kAnyRing, name, settings));
    host_ = make_handle(std::move(made), name);
  }
  if (hosts.size() == 1) return {};
  const bool has_slice = place < slices_;
  ANYCCL_TRY(CommPtr made,
             split(parent, has_slice ? place : ANYCCL_SPLIT_NOCOLOR, host, kAnyRing, name, {}));
  if (!has_slice) return {};
  for (const auto& [number, ranks] : hosts)
    across_hosts_.push_back(ranks[static_cast<std::size_t>(place)]);
  exchange_ = std::make_unique<CodedExchange>(made, codec_, *kernels_.codecs);
  across_ = make_handle(std::move(made), name);
  return {};
}

Status CodedAllReduce::destroy() {
  exchange_ = nullptr;
  Status first;
  for (anycclComm_t* const handle : {&across_, &host_}) {
    anycclComm_t const comm = std::exchange(*handle, nullptr);
    if (comm != nullptr && anycclCommDestroy(comm) != anycclSuccess && first.ok())
      first = error(Code::invalid_usage, "{}", anycclGetLastError(nullptr));
  }
  return first;
}

Status CodedAllReduce::check(const Call& call) const {
  ANYCCL_CHECK(check_codec_type(codec_, call.dtype));
  if (call.op != ReduceOp::sum && call.op != ReduceOp::avg)
    return error(Code::unsupported, "operator {} with codec {}: a coded AllReduce has sum and avg",
                 static_cast<int>(call.op), info_of(codec_).name);
  if (call.count > std::size_t{1} << 46)
    return error(Code::invalid_argument, "count {} is negative or larger than any memory",
                 call.count);
  if (call.count > 0 && (call.input == nullptr || call.output == nullptr))
    return error(Code::invalid_argument, "{} is NULL and count is {}",
                 call.input == nullptr ? "sendbuff" : "recvbuff", call.count);
  const std::size_t bytes = call.count * bytes_of(call.dtype);
  if (call.input != call.output && overlap(call.input, bytes, call.output, bytes))
    return error(Code::invalid_argument, "sendbuff and recvbuff overlap and are not equal");
  return {};
}

/// All ranks of `comm`, which are these of the parent, have made the same call.
Status CodedAllReduce::agree(Comm& comm, const std::vector<int>& ranks, const Call& call) const {
  ANYCCL_TRY(const std::vector<Asked> all, of_all(comm, asked(call)));
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i] != all[0])
      return error(Code::invalid_usage, "rank {} called coded {}, but rank {} {}", ranks[0],
                   describe(all[0]), ranks[i], describe(all[i]));
  return {};
}

Status CodedAllReduce::run(const Call& call) {
  const std::lock_guard lock(mutex_);
  ANYCCL_CHECK(failure_);
  ANYCCL_CHECK(check(call));
  const auto body = [&]() -> Status {
    if (host_ != nullptr) ANYCCL_CHECK(agree(*host_->comm, in_host_, call));
    if (across_ != nullptr) ANYCCL_CHECK(agree(*across_->comm, across_hosts_, call));
    if (call.count == 0) return {};
    const bool is_one_host = static_cast<int>(in_host_.size()) == size_;
    if (!is_one_host) return run_between_hosts(call);
    if (host_ != nullptr) return host_->comm->run(call);
    if (call.input != call.output)
      std::copy_n(call.input, call.count * bytes_of(call.dtype), call.output);
    return {};
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
  if (host_ != nullptr) host_->comm->abort(why);
  if (across_ != nullptr) across_->comm->abort(why);
}

/// sums_ = this rank's slice, summed over the host.
Status CodedAllReduce::add_in_host(const Call& call, std::vector<std::size_t>& counts,
                                   std::vector<std::size_t>& firsts) {
  const std::size_t me = uindex(host_->comm->rank());
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
  return host_->comm->run(sum);
}

Status CodedAllReduce::run_between_hosts(const Call& call) {
  const auto divisor = static_cast<std::uint32_t>(call.op == ReduceOp::avg ? size_ : 1);
  const CodecVector x{const_cast<std::byte*>(call.input), call.count, call.dtype};
  const CodecVector y{call.output, call.count, call.dtype};
  if (host_ == nullptr) return exchange_->run(x, y, divisor);

  std::vector<std::size_t> counts(in_host_.size()), firsts(in_host_.size(), call.count);
  const std::size_t grains = (call.count + kCodecGrain - 1) / kCodecGrain;
  const auto slices = static_cast<std::size_t>(slices_);
  for (std::size_t s = 0; s < slices; ++s) {
    firsts[s] = std::min(call.count, grains * s / slices * kCodecGrain);
    counts[s] = std::min(call.count, grains * (s + 1) / slices * kCodecGrain) - firsts[s];
  }
  ANYCCL_CHECK(add_in_host(call, counts, firsts));
  const std::size_t me = uindex(host_->comm->rank());
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
  return host_->comm->run(all);
}

}  // namespace anyccl
