// Messages, barriers, and exchanges of arrays of different types.

#include <algorithm>
#include <iterator>
#include <utility>

#include "collectives.hpp"

namespace anyccl::python {
namespace {

/// One side of all_to_all_w: blocks of several arrays as offsets from the first of them in memory.
struct Side {
  std::byte* base = nullptr;
  std::vector<std::size_t> counts, displs;  // displs in bytes
  std::vector<anycclDataType_t> types;
};

Side side_of(const std::vector<Array>& arrays) {
  Side side;
  for (const Array& one : arrays)
    if (one.count() > 0 && (side.base == nullptr || one.data < side.base)) side.base = one.data;
  for (const Array& one : arrays) {
    side.counts.push_back(one.count());
    side.displs.push_back(one.count() == 0 ? 0 : static_cast<std::size_t>(one.data - side.base));
    side.types.push_back(static_cast<anycclDataType_t>(one.dtype));
  }
  return side;
}

std::vector<Array> arrays_of(Communicator& c, const nb::sequence& list, const char* name,
                             Array (*take)(nb::handle, const char*)) {
  std::vector<Array> arrays;
  for (const nb::handle one : list)
    arrays.push_back(one.is_none() ? Array::none() : take(one, name));
  if (arrays.size() != static_cast<std::size_t>(c.size()))
    raise_invalid(std::string(name) + " has " + std::to_string(arrays.size()) +
                  " entries, but needs one for each of " + std::to_string(c.size()) + " ranks");
  return arrays;
}

/// None is any source; no number is.
int source_of(Communicator& c, std::optional<int> src) {
  if (src && (*src < 0 || *src >= c.size()))
    raise_invalid("src " + std::to_string(*src) + " is not a rank of this communicator of " +
                  std::to_string(c.size()));
  return src.value_or(ANYCCL_ANY_SOURCE);
}

}  // namespace

nb::object barrier(Communicator& c, const Options& how) {
  return c.run(request_of(anycclCollBarrier, Array(), Result(), 0), how);
}

nb::object send(Communicator& c, const Options& how, nb::handle x, int dst, int tag) {
  Array in = Array::input(x, "x");
  Request r = request_of(anycclCollSend, std::move(in), Result(), in.count());
  r.call.root = dst;
  r.call.tag = tag;
  return c.run(std::move(r), how);
}

nb::object recv(Communicator& c, const Options& how, nb::handle out, std::optional<int> src,
                int tag) {
  Result result(Array::output(out, "out"));
  Request r = request_of(anycclCollRecv, Array(), std::move(result), result.array().count());
  r.call.datatype = static_cast<anycclDataType_t>(r.result.array().dtype);
  r.call.root = source_of(c, src);
  r.call.tag = tag;
  return c.run(std::move(r), how);
}

std::pair<int, std::size_t> probe_bytes(Communicator& c, std::optional<int> src, int tag) {
  const int source = source_of(c, src);
  anycclMessage_t found{};
  const Communicator::Call turn(c);
  unsigned limit_ms = 0;
  raise_unless_ok(unlocked([&] { return anycclCommGetTimeout(turn.handle, &limit_ms); }));
  const Seconds limit = c.timeout() || limit_ms == 0 ? c.timeout() : Seconds(limit_ms / 1000.0);
  Outcome outcome;
  const bool done = wait_in_slices(limit, [&](unsigned ms) {
    outcome = outcome_of(anycclProbeFor(source, tag, turn.handle, ms, &found));
    return outcome.code != anycclInProgress;
  });
  if (!done)
    raise(anycclTimeout, "no object has come from " +
                             (src ? "rank " + std::to_string(*src) : "any rank") + " with tag " +
                             std::to_string(tag) + " in " + std::to_string(*limit) + " s");
  raise_unless_ok(outcome);
  if (found.datatype != anycclUint8)
    raise(anycclInvalidUsage, "rank " + std::to_string(found.source) + " sends an array with tag " +
                                  std::to_string(tag) + ", and this rank receives an object");
  return {found.source, found.count};
}

nb::object recv_found(Communicator& c, nb::handle out, int src, int tag) {
  Request r = request_of(anycclCollRecv, Array(), Result(Array::output(out, "out")), 0);
  const Array& array = r.result.array();
  const anycclMessage_t message{src, tag, static_cast<anycclDataType_t>(array.dtype),
                                array.count()};
  const Communicator::Call turn(c);
  auto operation = std::make_shared<Operation>(std::move(r));
  raise_unless_ok(unlocked([&] {
    return anycclRecvFound(operation->request.result.array().data, &message, turn.handle,
                           &operation->work);
  }));
  if (operation->work == nullptr) return nb::none();
  return nb::cast(Work(c.shared_from_this(), std::move(operation)));
}

nb::object all_to_all_w(Communicator& c, const Options& how, const nb::sequence& xs,
                        const nb::sequence& outs) {
  std::vector<Array> sent = arrays_of(c, xs, "xs", Array::input),
                     received = arrays_of(c, outs, "outs", Array::output);
  Request r = request_of(Array(), Result::of(nb::borrow(outs)));
  r.extras_on_demand().start = [from = side_of(sent), to = side_of(received)](
                                   anycclComm_t comm, anycclStream_t stream) {
    return anycclAllToAllw(from.base, from.counts.data(), from.displs.data(), from.types.data(),
                           to.base, to.counts.data(), to.displs.data(), to.types.data(), comm,
                           stream);
  };
  r.extras_on_demand().arrays = std::move(sent);
  std::move(received.begin(), received.end(), std::back_inserter(r.extras_on_demand().arrays));
  return c.run(std::move(r), how);
}

}  // namespace anyccl::python
