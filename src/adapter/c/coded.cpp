#include "adapter/c/coded.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <new>

#include "adapter/c/creation.hpp"
#include "base/config.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
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
  std::uint8_t codec, everywhere, if_slow;
  bool operator==(const Terms&) const = default;
};

std::string describe(const Terms& terms) {
  return std::string(info_of(static_cast<Codec>(terms.codec)).name) +
         (terms.everywhere != 0 ? ", everywhere" : "") + (terms.if_slow != 0 ? ", if slow" : "");
}

Status agree_on_terms(Comm& parent, const Terms& mine) {
  ANYCCL_TRY(const std::vector<Terms> all, of_all(parent, mine));
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      return error(Code::invalid_usage, "rank 0 creates a coded AllReduce of {}, but rank {} of {}",
                   describe(all[0]), r, describe(all[r]));
  return {};
}

/// Which sums are coded follows from the placement of ranks, unless each is a host of its own, and from what was
/// measured, where that decides.
Status check_level(const Comm& parent, bool has_hosts, Codec codec, CodedAllReduce::Use use) {
  const int level = level_of(parent.membership().policy, nullptr);
  if (use.if_slow && level >= kLevelOfTrees)
    return error(Code::unsupported,
                 "level {} of reproducibility with codec {} if slow: what is coded depends on a "
                 "measurement",
                 level, info_of(codec).name);
  if (level < kMostLevel || use.everywhere || !has_hosts) return {};
  return error(Code::unsupported,
               "level {} of reproducibility with codec {} between hosts: what is coded depends on "
               "which ranks are on which host, unless it is coded everywhere",
               level, info_of(codec).name);
}

constexpr std::size_t kMeasured = std::size_t{256} << 10;  // elements

/// Seconds.
Result<double> best_time(const std::function<Status()>& exchange) {
  constexpr int kRounds = 4;  // the first of them makes connections and memory
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    ANYCCL_CHECK(exchange());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (round > 0) best = std::min(best, took.count());
  }
  return best;
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

Result<std::unique_ptr<CodedAllReduce>> CodedAllReduce::create(Comm& parent, Codec codec, Use use,
                                                               const std::string& name) {
  ANYCCL_TRY(const KernelTable* const kernels, best_kernels());
  ANYCCL_TRY(const Config config, read_config());
  use.everywhere = use.everywhere || config.wire_everywhere;
  ANYCCL_CHECK(
      agree_on_terms(parent, {static_cast<std::uint8_t>(codec), use.everywhere, use.if_slow}));
  std::unique_ptr<CodedAllReduce> made(new CodedAllReduce(parent, codec, *kernels, use.everywhere));
  const std::vector<int>& hosts = made->host_of_;
  const bool has_hosts = std::ranges::count(hosts, hosts[0]) < parent.size();
  ANYCCL_CHECK(check_level(parent, has_hosts, codec, use));
  CommSettings settings;  // so that sums depend neither on the call nor on the slice
  // Tuning while the program runs promises nothing, and so contradicts any level.
  settings.level = config.tune_at_start ? -1 : kMostLevel;
  if (has_hosts) ANYCCL_CHECK(made->make_groups(parent, name, settings));
  if (has_hosts && use.if_slow) ANYCCL_CHECK(made->measure(parent));
  if (!has_hosts) made->is_coded_[0] = made->is_coded_[1] = false;
  if (made->is_coded_[0] && made->is_coded_[1]) return made;
  ANYCCL_TRY(CommPtr all, split(parent, 0, made->me_, kAnyRing, name, settings));
  made->all_ = make_handle(std::move(all), name);
  return made;
}

Status CodedAllReduce::make_groups(Comm& parent, const std::string& name,
                                   const CommSettings& settings) {
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
    ANYCCL_TRY(CommPtr made, split(parent, host, me_, kAnyRing, name, settings));
    host_ = make_handle(std::move(made), name);
  }
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

/// Seconds with the codec and without; of nothing where this rank exchanges nothing with other hosts.
Result<CodedAllReduce::Times> CodedAllReduce::times_of(DType dtype) {
  if (exchange_ == nullptr) return Times{};
  std::vector<float> vector(kMeasured);
  const CodecVector x{vector.data(), kMeasured, dtype};
  Call call;
  call.collective = Collective::all_reduce;
  call.dtype = dtype;
  call.count = kMeasured;
  call.input = call.output = reinterpret_cast<std::byte*>(vector.data());
  ANYCCL_TRY(const double coded, best_time([&] { return exchange_->run(x, x, 1); }));
  ANYCCL_TRY(const double plain, best_time([&] { return across_->comm->run(call); }));
  return Times{coded, plain};
}

/// What the codec makes faster is coded: by a tenth, as it costs accuracy. A rank that fails says so to the others.
Status CodedAllReduce::measure(Comm& parent) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Result<Times> mine = times_of(dtype);
    const Times failed{-1, -1};
    ANYCCL_TRY(const std::vector<Times> all, of_all(parent, mine.ok() ? *mine : failed));
    ANYCCL_CHECK(mine.status());
    Times slowest{};
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (all[r].coded < 0)
        return error(Code::remote_error, "rank {} could not measure codec {} between hosts", r,
                     info_of(codec_).name);
      slowest = {std::max(slowest.coded, all[r].coded), std::max(slowest.plain, all[r].plain)};
    }
    is_coded_[place_of(dtype)] = slowest.coded < 0.9 * slowest.plain;
    if (me_ == 0)
      log(LogSubsystem::coll, "{} elements of {} between hosts: {:.3g} ms by {}, {:.3g} ms without",
          kMeasured, name_of(dtype), slowest.coded * 1e3, info_of(codec_).name,
          slowest.plain * 1e3);
  }
  return {};
}

Result<bool> CodedAllReduce::uses_codec(DType dtype) const {
  ANYCCL_CHECK(check_codec_type(codec_, dtype));
  return is_coded(dtype);
}

Status CodedAllReduce::destroy() {
  exchange_ = nullptr;
  Status first;
  for (anycclComm_t* const handle : {&all_, &across_, &host_}) {
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

/// All ranks of `comm`, which are these of the parent, or all, have made the same call.
Status CodedAllReduce::agree(Comm& comm, const std::vector<int>& ranks, const Call& call) const {
  ANYCCL_TRY(const std::vector<Asked> all, of_all(comm, asked(call)));
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i] != all[0])
      return error(Code::invalid_usage, "rank {} called coded {}, but rank {} {}",
                   ranks.empty() ? 0 : ranks[0], describe(all[0]),
                   ranks.empty() ? static_cast<int>(i) : ranks[i], describe(all[i]));
  return {};
}

Status CodedAllReduce::run(const Call& call) {
  const std::lock_guard lock(mutex_);
  ANYCCL_CHECK(failure_);
  ANYCCL_CHECK(check(call));
  const auto body = [&]() -> Status {
    if (all_ != nullptr) {
      ANYCCL_CHECK(agree(*all_->comm, {}, call));
    } else {
      if (host_ != nullptr) ANYCCL_CHECK(agree(*host_->comm, in_host_, call));
      if (across_ != nullptr) ANYCCL_CHECK(agree(*across_->comm, across_hosts_, call));
    }
    if (call.count == 0) return {};
    return is_coded(call.dtype) ? run_between_hosts(call) : all_->comm->run(call);
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
  for (anycclComm_t const comm : {all_, across_, host_})
    if (comm != nullptr) comm->comm->abort(why);
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
