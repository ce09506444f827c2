// The checks of a v-form's arrays: are they there, do its blocks fit memory and each other?

#include <algorithm>

#include "algorithm/schedule/contract.hpp"
#include "base/error.hpp"
#include "framework/call/check_call.hpp"

namespace anyccl {
namespace {

/// One side of a call, with the names that its caller knows.
struct Side {
  const std::size_t *counts, *displs;
  const std::byte* buffer;
  std::string_view counts_name, displs_name, buffer_name;
};

Status need(const void* pointer, std::string_view what) {
  if (pointer != nullptr) return {};
  return error(Code::invalid_argument, "{} is NULL", what);
}

Status check_side(const Side& side, std::size_t element, std::size_t ranks) {
  ANYCCL_CHECK(need(side.counts, side.counts_name));
  ANYCCL_CHECK(need(side.displs, side.displs_name));
  const std::size_t most = (std::size_t{1} << 62) / element;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (side.counts[r] > most || side.displs[r] > most)
      return error(Code::invalid_argument,
                   "{0}[{2}] = {3} or {1}[{2}] = {4} is negative or overflows", side.counts_name,
                   side.displs_name, r, side.counts[r], side.displs[r]);
    if (side.counts[r] > 0 && side.buffer == nullptr)
      return error(Code::invalid_argument, "{} is NULL and {}[{}] is {}", side.buffer_name,
                   side.counts_name, r, side.counts[r]);
  }
  return {};
}

/// Two blocks must not be received in the same place.
Status check_apart(const Side& side, std::size_t ranks) {
  std::vector<std::size_t> order;
  for (std::size_t r = 0; r < ranks; ++r)
    if (side.counts[r] > 0) order.push_back(r);
  const auto begins_before = [&](std::size_t a, std::size_t b) {
    return side.displs[a] < side.displs[b];
  };
  if (!std::is_sorted(order.begin(), order.end(), begins_before))
    std::sort(order.begin(), order.end(), begins_before);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::size_t a = order[i - 1], b = order[i];
    if (side.displs[a] + side.counts[a] > side.displs[b])
      return error(Code::invalid_argument,
                   "blocks {} and {} of {} overlap: {}[{}] = {} and {}[{}] = {}, of {} elements", a,
                   b, side.buffer_name, side.displs_name, a, side.displs[a], side.displs_name, b,
                   side.displs[b], side.counts[a]);
  }
  return {};
}

/// The one block of the other side: of the size that the array says, and not in another's place.
Status check_block(const Call& call, bool sends, const Side& side, Rank me, std::size_t ranks) {
  const std::string_view name = sends ? "sendbuff" : "recvbuff";
  const std::byte* const block = sends ? call.input : call.output;
  const std::size_t element = bytes_of(call.dtype);
  if (call.count != side.counts[uindex(me)])
    return error(Code::invalid_argument, "{} is {} but {}[{}] is {}",
                 sends ? "sendcount" : "recvcount", call.count, side.counts_name, index(me),
                 side.counts[uindex(me)]);
  for (std::size_t r = 0; r < ranks; ++r) {
    if (r == uindex(me) && call.in_place(me)) continue;
    if (overlap(block, call.count * element, side.buffer + side.displs[r] * element,
                side.counts[r] * element))
      return error(Code::invalid_argument, "{} overlaps block {} of {}, but not as in place", name,
                   r, side.buffer_name);
  }
  return {};
}

}  // namespace

Status check_blocks(const Call& call, Rank me, int size) {
  const bool at_root = call.root == me,
             sends = has_blocks_apart(call.collective, at_root, Space::input),
             receives = has_blocks_apart(call.collective, at_root, Space::output);
  const std::size_t element = bytes_of(call.dtype);
  const auto ranks = static_cast<std::size_t>(size);
  const Side from{call.send_counts, call.send_displs, call.input,
                  "sendcounts",     "sdispls",        "sendbuff"};
  const Side to{call.recv_counts, call.recv_displs, call.output,
                "recvcounts",     "rdispls",        "recvbuff"};
  if (sends) ANYCCL_CHECK(check_side(from, element, ranks));
  if (receives) ANYCCL_CHECK(check_side(to, element, ranks));
  if (receives) ANYCCL_CHECK(check_apart(to, ranks));
  const bool sends_block = !sends && blocks_held(call.collective, size, at_root, Space::input) > 0,
             receives_block =
                 !receives && blocks_held(call.collective, size, at_root, Space::output) > 0;
  if (sends_block && call.count > 0) ANYCCL_CHECK(need(call.input, "sendbuff"));
  if (receives_block && call.count > 0) ANYCCL_CHECK(need(call.output, "recvbuff"));
  if (sends != receives) return check_block(call, receives, sends ? from : to, me, ranks);
  if (sends && call.input == call.output && call.input != nullptr)
    return error(Code::invalid_argument,
                 "anycclAllToAllv does not work in place: sendbuff equals recvbuff");
  return {};
}

}  // namespace anyccl
