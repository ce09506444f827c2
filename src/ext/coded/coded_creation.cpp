// How a coded AllReduce comes to be: the terms of all ranks, the communicators, and whether it
// pays.

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <numeric>

#include "base/error.hpp"
#include "base/log.hpp"
#include "c/creation.hpp"
#include "ext/coded/coded.hpp"
#include "framework/communicator/call_sequence.hpp"
#include "framework/tuning/order_needs.hpp"
#include "framework/tuning/tuner.hpp"
#include "platform/reduce/isa.hpp"
#include "runtime/members/exchange.hpp"

namespace anyccl {
namespace {

/// All ranks have the same ones.
struct Terms {
  std::uint8_t codec, everywhere, if_slow;
  bool operator==(const Terms&) const = default;
};
constexpr std::uint8_t kNoCodec = 255;  // this rank has an error of its own

std::string describe(const Terms& terms) {
  if (terms.codec == kNoCodec) return "a codec that there is not";
  return std::string(info_of(static_cast<Codec>(terms.codec)).name) +
         (terms.everywhere != 0 ? ", everywhere" : "") + (terms.if_slow != 0 ? ", if slow" : "");
}

Status check_same_terms(const std::vector<Terms>& all) {
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      return error(Code::invalid_usage, "rank 0 creates a coded AllReduce of {}, but rank {} of {}",
                   describe(all[0]), r, describe(all[r]));
  return {};
}

/// Which sums are coded follows from the placement of ranks, unless each is a host of its own, and
/// from what was measured, where that decides.
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

}  // namespace

CodedAllReduce::CodedAllReduce(const Comm& parent, Codec codec, const KernelTable& kernels, Use use)
    : codec_(codec),
      kernels_(kernels),
      me_(index(parent.rank())),
      size_(parent.size()),
      host_of_(static_cast<std::size_t>(parent.size())) {
  if (use.everywhere)
    std::iota(host_of_.begin(), host_of_.end(), 0);
  else if (parent.membership().network)  // else there is one host, and near_of divides that
    host_of_ = parent.membership().near_of;
}

Result<std::unique_ptr<CodedAllReduce>> CodedAllReduce::create(Comm& parent, int codec, Use use,
                                                               const std::string& name) {
  ANYCCL_TRY(const auto sequence, CallSequence::begin(parent));
  const Result<Codec> known = codec_of(codec);
  const Terms mine{known.ok() ? static_cast<std::uint8_t>(*known) : kNoCodec, use.everywhere,
                   use.if_slow};
  ANYCCL_TRY(const std::vector<Terms> all, exchange_with_all(parent, mine));
  ANYCCL_CHECK(known.status());
  ANYCCL_CHECK(check_same_terms(all));
  ANYCCL_TRY(const KernelTable* const kernels, best_kernels());
  Status why;
  try {
    std::unique_ptr<CodedAllReduce> made(new CodedAllReduce(parent, *known, *kernels, use));
    why = made->make(parent, use, name);
    if (why.ok()) return made;
    made->fail(why);
    return why;
  } catch (const std::bad_alloc&) {
    why =
        error(Code::system_error, "there is no memory for a coded AllReduce of {}", describe(mine));
  }
  parent.abort(why);  // others wait for this rank
  return why;
}

/// Makes the communicators that the sums need, by splits of `parent`, and measures whether the
/// codec pays, if `use` says so. All ranks of `parent` call it.
Status CodedAllReduce::make(Comm& parent, Use use, const std::string& name) {
  const bool has_hosts = std::ranges::count(host_of_, host_of_[0]) < size_;
  ANYCCL_CHECK(check_level(parent, has_hosts, codec_, use));
  if (!has_hosts) is_coded_[0] = is_coded_[1] = false;
  if (has_hosts) ANYCCL_CHECK(make_groups(parent, name));
  if (has_hosts && !use.if_slow) return {};
  ANYCCL_TRY(CommPtr all, split(parent, 0, me_, kAnyRing, name));
  all_.handle = make_handle(std::move(all), name);
  all_.ranks.resize(static_cast<std::size_t>(size_));
  std::iota(all_.ranks.begin(), all_.ranks.end(), 0);
  return has_hosts ? measure() : Status();
}

Status CodedAllReduce::make_groups(Comm& parent, const std::string& name) {
  std::map<int, std::vector<int>> hosts;
  for (int r = 0; r < size_; ++r) hosts[host_of_[static_cast<std::size_t>(r)]].push_back(r);
  std::size_t least = hosts.begin()->second.size(), most = least;
  for (const auto& [host, ranks] : hosts) {
    least = std::min(least, ranks.size());
    most = std::max(most, ranks.size());
  }
  const auto slices = static_cast<int>(least);  // ranks of the smallest host
  hosts_ = hosts.size();
  const int host = host_of_[static_cast<std::size_t>(me_)];
  host_.ranks = hosts[host];
  if (most > 1) {
    CommSettings settings;
    settings.level = kMostLevel;  // so that sums depend neither on the call nor on the slice
    ANYCCL_TRY(CommPtr made, split(parent, host, me_, kAnyRing, name, settings));
    sums_ = std::make_unique<HostSums>(made, slices, *kernels_.codecs);
    host_.handle = make_handle(std::move(made), name);
  }
  const auto place = static_cast<int>(std::ranges::find(host_.ranks, me_) - host_.ranks.begin());
  const bool has_slice = place < slices;
  ANYCCL_TRY(CommPtr made,
             split(parent, has_slice ? place : ANYCCL_SPLIT_NOCOLOR, host, kAnyRing, name));
  if (!has_slice) return {};
  for (const auto& [number, ranks] : hosts)
    across_.ranks.push_back(ranks[static_cast<std::size_t>(place)]);
  exchange_ = std::make_unique<CodedExchange>(made, codec_, *kernels_.codecs);
  across_.handle = make_handle(std::move(made), name);
  return {};
}

Result<CodedAllReduce::Times> CodedAllReduce::measure_times(DType dtype) {
  std::vector<float> x(kMeasured), y(kMeasured);
  for (std::size_t i = 0; i < kMeasured; ++i) x[i] = 1 + static_cast<float>(i % 127) / 128;
  Call call;
  call.collective = Collective::all_reduce;
  call.dtype = dtype;
  call.count = kMeasured;
  call.input = reinterpret_cast<const std::byte*>(x.data());
  call.output = reinterpret_cast<std::byte*>(y.data());
  ANYCCL_TRY(const double coded, best_time([&] { return run_between_hosts(call); }));
  ANYCCL_TRY(const double plain, best_time([&] { return all_.handle->comm->run(call); }));
  return Times{coded, plain};
}

/// Elements that the codec makes faster by a tenth are coded, as it costs accuracy. All ranks
/// decide the same.
Status CodedAllReduce::measure() {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    ANYCCL_TRY(const Times mine, measure_times(dtype));
    ANYCCL_TRY(const std::vector<Times> all, exchange_with_all(*all_.handle->comm, mine));
    Times slowest{};
    for (const Times& one : all)
      slowest = {std::max(slowest.coded, one.coded), std::max(slowest.plain, one.plain)};
    is_coded_[place_of(dtype)] = slowest.coded < 0.9 * slowest.plain;
    if (me_ == 0)
      log(LogSubsystem::coll, "{} elements of {}: {:.3g} ms by {} between hosts, {:.3g} ms without",
          kMeasured, name_of(dtype), slowest.coded * 1e3, info_of(codec_).name,
          slowest.plain * 1e3);
  }
  return {};
}

}  // namespace anyccl
