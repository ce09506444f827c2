#include "ext/coded/coded.hpp"

#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "runtime/members/exchange.hpp"

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

/// Elements of a piece for each host. Enough that messages are not small; few, as nothing travels
/// while the first one is encoded and the last one decoded, nor while sums inside the host are made
/// of the first.
constexpr std::size_t kAlone = std::size_t{512} << 10, kBesideSums = std::size_t{128} << 10;
static_assert(kAlone % kCodecGrain == 0 && kBesideSums % kCodecGrain == 0);

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
  sums_ = nullptr;
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

/// Compares the call with those of the other ranks of the group, which do so, too; Ok without that
/// where this rank has no communicator of the group.
Status CodedAllReduce::check_same_call(const Group& group, const Call& call) const {
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
    ANYCCL_CHECK(check_same_call(all_, call));
    if (all_.handle == nullptr) {
      ANYCCL_CHECK(check_same_call(host_, call));
      ANYCCL_CHECK(check_same_call(across_, call));
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

Status CodedAllReduce::run_between_hosts(const Call& call) {
  const auto divisor = static_cast<std::uint32_t>(call.op == ReduceOp::avg ? size_ : 1);
  const std::size_t hosts = hosts_, lag = CodedExchange::lag(hosts);
  if (sums_ == nullptr) {
    const CodecVector x{const_cast<std::byte*>(call.input), call.count, call.dtype};
    exchange_->begin(x, {call.output, call.count, call.dtype}, divisor, kAlone * hosts);
    for (std::size_t turn = 0; turn < exchange_->pieces() + lag; ++turn)
      ANYCCL_CHECK(exchange_->turn(turn));
    return {};
  }
  sums_->begin(call, kBesideSums * hosts);
  if (exchange_ != nullptr)
    exchange_->begin(sums_->sums(), sums_->result(), divisor, kBesideSums * hosts);
  ANYCCL_CHECK(sums_->add(0));
  for (std::size_t turn = 0; turn < sums_->pieces() + lag; ++turn) {
    if (turn + 1 < sums_->pieces()) ANYCCL_CHECK(sums_->add(turn + 1));
    if (turn < sums_->pieces()) ANYCCL_CHECK(sums_->wait_for_sum(turn));
    if (exchange_ != nullptr) ANYCCL_CHECK(exchange_->turn(turn));
    if (turn >= lag) ANYCCL_CHECK(sums_->start_gather(turn - lag));
  }
  return sums_->finish();
}

}  // namespace anyccl
