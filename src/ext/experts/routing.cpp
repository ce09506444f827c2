// The C interface: dispatch and combine of mixture-of-experts layers.

#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "c/device/device_calls.hpp"
#include "ext/experts/token_routing.hpp"
#include "framework/call/operators.hpp"
#include "platform/reduce/copy.hpp"
#include "platform/reduce/reduce.hpp"

struct anycclRouting {
  anyccl::TokenRouting routing;
  std::vector<std::byte> outgoing, incoming;  // rows, as they are exchanged
};

namespace anyccl {
namespace {

/// Both sides of an exchange, in elements.
struct Sides {
  explicit Sides(std::vector<std::size_t> rows, std::size_t width) : counts(std::move(rows)) {
    for (std::size_t& count : counts) count *= width;
    displs.resize(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), displs.begin(), std::size_t{0});
  }
  std::vector<std::size_t> counts, displs;
};

Call all_to_all_v(const Sides& sent, const std::byte* from, const Sides& received, std::byte* to,
                  DType dtype) {
  Call call;
  call.collective = Collective::all_to_all_v;
  call.dtype = dtype;
  call.input = from, call.output = to;
  call.send_counts = sent.counts.data(), call.send_displs = sent.displs.data();
  call.recv_counts = received.counts.data(), call.recv_displs = received.displs.data();
  return call;
}

/// Runs `call` and waits for it, unless it would wait for itself in a function of a stream.
Status run(Comm& comm, const Call& call) {
  ANYCCL_CHECK(check_wait({.comm = &comm, .call = &call}));
  return comm.run(call);
}

/// A number that all ranks give alike.
struct Common {
  const char* name;
  std::size_t value;
};

/// Each rank tells each other one how many rows it sends to its experts, and the common numbers.
Status exchange_counts(TokenRouting& routing, Comm& comm) {
  const TokenRouting::Wanted& wanted = routing.wanted();
  const Common common[] = {{"capacity", wanted.capacity}, {"padded", wanted.padded ? 1U : 0U}};
  const auto local = static_cast<std::size_t>(routing.local_experts());
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<std::size_t> told;
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto first = routing.sent().begin() + static_cast<std::ptrdiff_t>(r * local);
    told.insert(told.end(), first, first + static_cast<std::ptrdiff_t>(local));
    for (const Common& number : common) told.push_back(number.value);
  }
  std::vector<std::size_t> heard(told.size()), counts;
  Call call;
  call.collective = Collective::all_to_all;
  call.dtype = DType::u64;
  call.count = local + std::size(common);
  static_assert(sizeof(std::size_t) == 8);
  call.input = reinterpret_cast<const std::byte*>(told.data());
  call.output = reinterpret_cast<std::byte*>(heard.data());
  ANYCCL_CHECK(run(comm, call));
  auto at = heard.begin();
  for (std::size_t r = 0; r < ranks; ++r) {
    counts.insert(counts.end(), at, at + static_cast<std::ptrdiff_t>(local));
    at += static_cast<std::ptrdiff_t>(local);
    for (const Common& number : common)
      if (const std::size_t theirs = *at++; theirs != number.value)
        return error(Code::invalid_usage,
                     "{} is {} here and {} on rank {}: it is the same on all ranks", number.name,
                     number.value, theirs, r);
  }
  return routing.set_received(counts);
}

/// What dispatch and combine are called with.
struct Exchange {
  const void* from;
  void* to;
  std::size_t width;
  DType dtype;
  std::size_t row() const { return width * bytes_of(dtype); }
};

constexpr std::size_t kMostBytes = std::size_t{1} << 46;

Status check(const Exchange& x, const anycclRouting* routing, anycclComm_t comm) {
  ANYCCL_CHECK(need_comm(comm));
  ANYCCL_CHECK(need(routing, "routing"));
  if (const int ranks = comm->comm->size(); routing->routing.ranks() != ranks)
    return error(Code::invalid_argument, "routing is of {} ranks, but the communicator has {}",
                 routing->routing.ranks(), ranks);
  if (bytes_of(x.dtype) == 0)
    return error(Code::invalid_argument, "datatype {} does not exist", static_cast<int>(x.dtype));
  if (x.width > (std::size_t{1} << 40))
    return error(Code::invalid_argument, "width {} is negative or overflows", x.width);
  if (x.row() > 0 && routing->routing.rows() > kMostBytes / x.row())
    return error(Code::invalid_argument, "{} rows of {} elements are larger than any memory",
                 routing->routing.rows(), x.width);
  return {};
}

Status need_rows(const void* buffer, const char* name, std::size_t rows) {
  if (rows == 0 || buffer != nullptr) return {};
  return error(Code::invalid_argument, "{} is NULL, but has {} rows", name, rows);
}

Status dispatch(const Exchange& x, anycclRouting& handle, Comm& comm) {
  const TokenRouting& routing = handle.routing;
  const std::size_t row = x.row(), choices = static_cast<std::size_t>(routing.wanted().choices);
  ANYCCL_CHECK(need_rows(x.from, "sendbuff", routing.wanted().tokens));
  ANYCCL_CHECK(need_rows(x.to, "recvbuff", routing.rows()));
  const Sides sent(routing.sent_to(), x.width), received(routing.received_from(), x.width);
  handle.outgoing.resize((sent.displs.back() + sent.counts.back()) * bytes_of(x.dtype));
  handle.incoming.resize((received.displs.back() + received.counts.back()) * bytes_of(x.dtype));
  const auto* const tokens = static_cast<const std::byte*>(x.from);
  for (std::size_t i = 0; i < routing.place_of().size(); ++i)
    if (routing.place_of()[i] != TokenRouting::kDropped)
      copy_bytes(handle.outgoing.data() + routing.place_of()[i] * row, tokens + i / choices * row,
                 row);
  ANYCCL_CHECK(run(
      comm, all_to_all_v(sent, handle.outgoing.data(), received, handle.incoming.data(), x.dtype)));
  auto* const rows = static_cast<std::byte*>(x.to);
  if (routing.wanted().padded) std::memset(rows, 0, routing.rows() * row);
  for (const TokenRouting::Block& block : routing.blocks())
    copy_bytes(rows + block.belongs * row, handle.incoming.data() + block.arrives * row,
               block.rows * row);
  return {};
}

/// The sum of the rows of one token, each times its weight.
class WeightedSum {
 public:
  /// `weights`: null if all are 1.
  static Result<WeightedSum> make(const Exchange& x, const void* weights, int choices) {
    WeightedSum sum(x, weights, static_cast<std::size_t>(choices));
    ANYCCL_TRY(sum.plus_, reduce_kernel(x.dtype, ReduceOp::sum));
    ANYCCL_TRY(sum.times_, reduce_kernel(x.dtype, ReduceOp::prod));
    return sum;
  }

  void write(std::size_t token, const std::size_t* places, const std::byte* rows, std::byte* to) {
    const std::size_t row = x_.row(), element = bytes_of(x_.dtype);
    const void* sources[kMostAtOnce];
    std::size_t found = 0;
    std::memset(to, 0, row);
    for (std::size_t k = 0; k < choices_; ++k) {
      if (places[k] == TokenRouting::kDropped) continue;
      const std::byte* source = rows + places[k] * row;
      if (weights_ != nullptr) {
        std::byte* const product = products_.data() + found * row;
        multiply(product, source, x_.width, element, weights_ + (token * choices_ + k) * element,
                 times_);
        source = product;
      }
      sources[found++] = source;
      if (found == kMostAtOnce) found = flush(sources, found, to);
    }
    flush(sources, found, to);
  }

 private:
  static constexpr std::size_t kMostAtOnce = 16;
  WeightedSum(const Exchange& x, const void* weights, std::size_t choices)
      : x_(x),
        weights_(static_cast<const std::byte*>(weights)),
        choices_(choices),
        products_(weights == nullptr ? 0 : kMostAtOnce * x.row()) {}

  /// to = the sum of the sources; the first ones replace the zeros, whose sign a sum would keep.
  /// Returns how many sources there are now: `to` alone, or none if there were none.
  std::size_t flush(const void** sources, std::size_t found, std::byte* to) {
    if (found > 0) plus_(to, nullptr, sources, found, x_.width);
    sources[0] = to;
    return found > 0 ? 1 : 0;
  }

  Exchange x_;
  const std::byte* weights_;
  std::size_t choices_;
  std::vector<std::byte> products_;
  ReduceFn plus_ = nullptr, times_ = nullptr;
};

Status combine(const Exchange& x, const void* weights, anycclRouting& handle, Comm& comm) {
  const TokenRouting& routing = handle.routing;
  const std::size_t row = x.row(), tokens = routing.wanted().tokens;
  const auto choices = static_cast<std::size_t>(routing.wanted().choices);
  ANYCCL_CHECK(need_rows(x.from, "sendbuff", routing.rows()));
  ANYCCL_CHECK(need_rows(x.to, "recvbuff", tokens));
  ANYCCL_TRY(WeightedSum sum, WeightedSum::make(x, weights, routing.wanted().choices));
  const Sides sent(routing.sent_to(), x.width), received(routing.received_from(), x.width);
  handle.outgoing.resize((sent.displs.back() + sent.counts.back()) * bytes_of(x.dtype));
  handle.incoming.resize((received.displs.back() + received.counts.back()) * bytes_of(x.dtype));
  const auto* const rows = static_cast<const std::byte*>(x.from);
  for (const TokenRouting::Block& block : routing.blocks())
    copy_bytes(handle.incoming.data() + block.arrives * row, rows + block.belongs * row,
               block.rows * row);
  ANYCCL_CHECK(run(
      comm, all_to_all_v(received, handle.incoming.data(), sent, handle.outgoing.data(), x.dtype)));
  auto* const out = static_cast<std::byte*>(x.to);
  for (std::size_t t = 0; t < tokens; ++t)
    sum.write(t, routing.place_of().data() + t * choices, handle.outgoing.data(), out + t * row);
  return {};
}

}  // namespace
}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclRoutingCreate(anycclRouting_t* routing, size_t ntokens, int choices,
                                   const int experts[], int nexperts, size_t capacity, int padded,
                                   anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need(routing, "routing"));
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need_no_group("anycclRoutingCreate"));
    if (ntokens > 0) ANYCCL_CHECK(need(experts, "experts"));
    const std::size_t entries = choices < 1 ? 0 : ntokens * static_cast<std::size_t>(choices);
    ANYCCL_TRY(TokenRouting made,
               TokenRouting::make({ntokens, choices, nexperts, capacity, padded != 0},
                                  {experts, entries}, comm->comm->size()));
    ANYCCL_CHECK(exchange_counts(made, *comm->comm));
    *routing = new anycclRouting{std::move(made), {}, {}};
    return {};
  });
}

anycclResult_t anycclRoutingDestroy(anycclRouting_t routing) {
  delete routing;
  return anycclSuccess;
}

anycclResult_t anycclRoutingRows(anycclRouting_t routing, size_t* rows, size_t counts[],
                                 size_t* dropped) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(routing, "routing"));
    ANYCCL_CHECK(need(rows, "rows"));
    *rows = routing->routing.rows();
    const std::vector<std::size_t> each = routing->routing.rows_of_experts();
    if (counts != nullptr) std::copy(each.begin(), each.end(), counts);
    if (dropped != nullptr) *dropped = routing->routing.dropped();
    return {};
  });
}

anycclResult_t anycclDispatch(const void* sendbuff, void* recvbuff, size_t width,
                              anycclDataType_t datatype, anycclRouting_t routing,
                              anycclComm_t comm) {
  const Exchange x{sendbuff, recvbuff, width, static_cast<DType>(as_byte(datatype))};
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(check(x, routing, comm));
    ANYCCL_CHECK(need_host_memory(comm, {sendbuff, recvbuff}));
    ANYCCL_CHECK(need_no_group("anycclDispatch"));
    return dispatch(x, *routing, *comm->comm);
  });
}

anycclResult_t anycclCombine(const void* sendbuff, const void* weights, void* recvbuff,
                             size_t width, anycclDataType_t datatype, anycclRouting_t routing,
                             anycclComm_t comm) {
  const Exchange x{sendbuff, recvbuff, width, static_cast<DType>(as_byte(datatype))};
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(check(x, routing, comm));
    ANYCCL_CHECK(need_host_memory(comm, {sendbuff, weights, recvbuff}));
    ANYCCL_CHECK(need_no_group("anycclCombine"));
    return combine(x, weights, *routing, *comm->comm);
  });
}
