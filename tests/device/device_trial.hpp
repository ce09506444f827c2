#pragma once
// One call of one rank, once with its buffers in memory of the host and once on a device: both must
// come to the same bytes, those included that the call does not write.

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "algorithm/schedule/contract.hpp"
#include "base/types.hpp"
#include "device/device_memory.hpp"

namespace anyccl::test {

using Bytes = std::vector<std::byte>;
using Counts = std::vector<std::size_t>;

/// All collectives that have algorithms.
inline std::vector<Collective> scheduled() {
  std::vector<Collective> all;
  for (int what = 0; what < anycclNumCollectives; ++what)
    if (is_scheduled(static_cast<Collective>(what))) all.push_back(static_cast<Collective>(what));
  return all;
}

/// Small whole numbers, which every type has and no sum rounds.
inline Bytes numbers(DType type, std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<int>(random() % 6);
    const float wide = static_cast<float>(value);
    std::uint64_t bits = static_cast<std::uint64_t>(value);
    if (type == DType::f32 || type == DType::bf16) {
      std::uint32_t of_float = 0;
      std::memcpy(&of_float, &wide, sizeof wide);
      bits = type == DType::f32 ? of_float : of_float >> 16;
    }
    const auto* const first = reinterpret_cast<const std::byte*>(&bits);
    bytes.insert(bytes.end(), first, first + bytes_of(type));
  }
  return bytes;
}

/// One call of one rank: its arrays, and where its buffers lie in their images.
struct Trial {
  anycclCall_t call{};
  Counts send_counts, send_displs, recv_counts, recv_displs;
  bool in_place = false;
  std::size_t input_elements = 0, output_elements = 0;
};

/// Blocks with gaps between them.
inline void lay_out(Counts& counts, Counts& displs, std::size_t& elements) {
  elements = 2;
  for (const std::size_t count : counts) {
    displs.push_back(elements);
    elements += count + 3;
  }
}

/// How many elements go from one rank to another, or belong to a rank.
inline std::size_t share(std::size_t count, int from, int to) {
  return (count + static_cast<std::size_t>(from * 3 + to)) % (count + 4);
}

inline void give_blocks(Trial& trial, Collective what, std::size_t count, int me, int n, int root) {
  const bool at_root = root == me;
  const bool pairs = what == Collective::all_to_all_v;
  trial.call.count = pairs ? 0 : share(count, 0, me);
  for (const Space side : {Space::input, Space::output}) {
    if (!has_blocks_apart(what, at_root, side)) continue;
    const bool is_input = side == Space::input;
    Counts& counts = is_input ? trial.send_counts : trial.recv_counts;
    for (int r = 0; r < n; ++r)
      counts.push_back(!pairs ? share(count, 0, r)
                              : share(count, is_input ? me : r, is_input ? r : me));
    lay_out(counts, is_input ? trial.send_displs : trial.recv_displs,
            is_input ? trial.input_elements : trial.output_elements);
  }
}

inline Trial trial_of(Collective what, DType type, std::size_t count, bool in_place,
                      int wanted_root, int me, int n) {
  Trial trial;
  anycclCall_t& call = trial.call;
  call.size = sizeof call;
  call.collective = static_cast<anycclCollective_t>(what);
  call.datatype = static_cast<anycclDataType_t>(type);
  call.op = anycclSum;
  const int root = is_rooted(what) ? wanted_root : 0;
  call.root = root;
  call.count = count;
  const bool at_root = root == me;
  if (!has_equal_blocks(what)) give_blocks(trial, what, count, me, n, root);
  const auto elements = [&](Space side, const Counts& counts, std::size_t apart) {
    return counts.empty() ? call.count * blocks_held(what, n, at_root, side) : apart;
  };
  trial.input_elements = elements(Space::input, trial.send_counts, trial.input_elements);
  trial.output_elements = elements(Space::output, trial.recv_counts, trial.output_elements);
  call.sendcounts = trial.send_counts.data(), call.sdispls = trial.send_displs.data();
  call.recvcounts = trial.recv_counts.data(), call.rdispls = trial.recv_displs.data();
  trial.in_place = in_place && what != Collective::all_to_all_v;
  return trial;
}

/// In place one image has both buffers: where each begins in it, in elements.
inline std::pair<std::size_t, std::size_t> places(const Trial& trial, int me) {
  if (!trial.in_place) return {0, 0};
  const auto rank = static_cast<std::size_t>(me);
  const auto block = [&](const Counts& displs) {
    return displs.empty() ? rank * trial.call.count : displs[rank];
  };
  if (trial.input_elements < trial.output_elements && trial.input_elements > 0)
    return {block(trial.recv_displs), 0};
  if (trial.output_elements < trial.input_elements && trial.output_elements > 0)
    return {0, block(trial.send_displs)};
  return {0, 0};
}

/// The buffers of a call, before or after it.
struct Images {
  Bytes input, output;  // in place the input is both
};

/// A rank, its device and a stream of that.
struct OneRank {
  Communicator& comm;
  const CurrentDevice& device;
  anycclStream_t stream;
  DeviceQueue queue = nullptr;  ///< If calls only go into queues: that of the stream.
};

/// How a rank makes a call; ranks may differ in it.
enum class Form : std::uint8_t { blocking, issued, prepared };

/// The sides of a call that lie on the device, and how it is made.
struct Sides {
  bool input, output;
  Form form = Form::blocking;
};

inline anycclResult_t make_call(const anycclCall_t& call, anycclComm_t comm, Form form) {
  if (form == Form::blocking) return anycclRun(&call, comm);
  anycclWork_t work = nullptr;
  anycclPrepared_t prepared = nullptr;
  anycclResult_t result = form == Form::issued ? anycclIssue(&call, comm, &work)
                                               : anycclPrepare(&call, comm, &prepared);
  if (prepared != nullptr) result = anycclStart(prepared, &work);
  if (result == anycclSuccess) result = anycclWorkWait(work);
  EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
  EXPECT_EQ(anycclPreparedFree(prepared), anycclSuccess);
  return result;
}

/// Makes the call with its input, its output or both on the device; gives their bytes afterwards.
inline Images run(const OneRank& rank, Trial trial, const Images& before, const Sides& sides) {
  const bool input_there = sides.input, output_there = sides.output;
  const std::size_t element = bytes_of(static_cast<DType>(trial.call.datatype));
  const auto [input_at, output_at] = places(trial, index(rank.comm.rank()));
  Images after = before;
  std::unique_ptr<OnDevice> input, output;
  if (input_there) input = std::make_unique<OnDevice>(rank.device, before.input);
  if (output_there && !trial.in_place)
    output = std::make_unique<OnDevice>(rank.device, before.output);
  std::byte* const in = input != nullptr ? input->at() : after.input.data();
  std::byte* const out = trial.in_place      ? in
                         : output != nullptr ? output->at()
                                             : after.output.data();
  trial.call.sendbuff = in + input_at * element;
  trial.call.recvbuff = out + output_at * element;
  if (input_there || output_there) trial.call.stream = rank.stream;
  EXPECT_EQ(make_call(trial.call, rank.comm.handle(), sides.form), anycclSuccess)
      << anycclGetLastError(rank.comm.handle());
  if (rank.queue != nullptr) rank.device.await(rank.queue);
  if (input != nullptr) after.input = input->bytes();
  if (output != nullptr) after.output = output->bytes();
  return after;
}

inline bool has_average(Collective what) {
  return what == Collective::all_reduce || what == Collective::reduce ||
         what == Collective::reduce_scatter;
}

/// Makes the call on the host, and then once for each of these. In place both sides lie together.
inline void compare_with_host(const OneRank& rank, Collective what, DType type, std::size_t count,
                              bool in_place, int root, const std::vector<Sides>& all,
                              anycclRedOp_t op = anycclSum) {
  const int me = index(rank.comm.rank()), n = rank.comm.size();
  Trial trial = trial_of(what, type, count, in_place, root, me, n);
  trial.call.op = op;
  const auto seed = static_cast<unsigned>(me + 1);
  const std::size_t most = std::max(trial.input_elements, trial.output_elements);
  const Images before{numbers(type, trial.in_place ? most : trial.input_elements, seed),
                      numbers(type, trial.output_elements, seed + 100)};
  const Images want = run(rank, trial, before, {false, false});
  for (const Sides& sides : all) {
    const bool output = trial.in_place ? sides.input : sides.output;
    const Images got = run(rank, trial, before, {sides.input, output, sides.form});
    EXPECT_EQ(got.input, want.input);
    EXPECT_EQ(got.output, want.output);
  }
}

/// So many calls, the same on all ranks but for where their buffers lie and how they are made; in
/// queues of devices all buffers lie on the device, and a prepared call is one on all ranks.
inline void make_calls(const OneRank& rank, unsigned seed, int calls) {
  std::mt19937 common(seed), own(seed + static_cast<unsigned>(index(rank.comm.rank())) + 1);
  const std::vector<Collective> all = scheduled();
  constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::u8, DType::i64};
  constexpr std::size_t kCounts[] = {0, 1, 7, 257, 4099, 20000};
  constexpr Form kForms[] = {Form::blocking, Form::issued, Form::prepared};
  for (int i = 0; i < calls && !testing::Test::HasFailure(); ++i) {
    const Collective what = all[common() % all.size()];
    const DType type = kTypes[common() % std::size(kTypes)];
    const std::size_t count = kCounts[common() % std::size(kCounts)];
    const bool in_place = common() % 2 == 0;
    const bool is_average = common() % 3 == 0 && has_average(what);
    const int root = static_cast<int>(common() % static_cast<unsigned>(rank.comm.size()));
    Sides sides{own() % 2 == 0, own() % 2 == 0, kForms[own() % std::size(kForms)]};
    if (rank.queue != nullptr)
      sides = {true, true, i % 3 == 0 ? Form::prepared : kForms[own() % 2]};
    SCOPED_TRACE(fmt::format("seed {}, call {}: {} of {} {}, root {}, in place {}, average {}",
                             seed, i, name(what), count, name_of(type), root, in_place,
                             is_average));
    compare_with_host(rank, what, type, count, in_place, root, {sides},
                      is_average ? anycclAvg : anycclSum);
  }
}

}  // namespace anyccl::test
