#include "framework/collective/fusion.hpp"

#include <algorithm>
#include <cstring>

#include "algorithm/schedule/contract.hpp"
#include "base/hash.hpp"
#include "base/round_up.hpp"
#include "framework/call/check_call.hpp"
#include "framework/call/operators.hpp"
#include "platform/reduce/copy.hpp"

namespace anyccl {
namespace {

/// Where packing costs less than an operation of its own: bytes of one part, and of all.
struct Limits {
  std::size_t part, all;
};
constexpr Limits kInMemory{16 << 10, 256 << 10}, kOverNetwork{64 << 10, 1 << 20};
constexpr std::size_t kMostParts = 256;

/// Whether one rank's call may read what an earlier one has written there, though the same calls of
/// the other ranks write nothing and cannot know it: they would pack what that rank may not.
bool may_depend_at_one_rank(Collective collective) {
  return collective == Collective::reduce || collective == Collective::exscan;
}

/// Whether the root moves its own part from buffer to buffer by itself, and no other rank's call
/// reads memory that an earlier one writes. Then the root can keep the order of dependent calls.
bool is_local_at_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::scatter ||
         collective == Collective::gather;
}

/// Whether a call of its collective and operator may be a part of one, whatever its size.
bool is_fusible(const Call& call) {
  return has_equal_blocks(call.collective) && !call.is_point_to_point() &&
         call.collective != Collective::barrier && !Operators::is_created(call.op) &&
         !may_depend_at_one_rank(call.collective);
}

/// How many blocks the larger side has, at the rank that has most.
std::size_t most_blocks(const Call& call, int size) {
  return std::max(blocks_held(call.collective, size, true, Space::input),
                  blocks_held(call.collective, size, true, Space::output));
}

/// By what all ranks have to give alike alone: others of them may differ in what is local, as time
/// limits.
bool are_alike(const Call& a, const Call& b, const CallSettingsTable& settings) {
  return a.collective == b.collective && a.dtype == b.dtype && a.op == b.op && a.root == b.root &&
         a.threads == b.threads && settings.are_alike(a.settings, b.settings);
}

/// Bytes that are in their place already are left alone: that memory may be read-only.
void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from) copy_bytes(to, from, bytes);
}

/// The memory that the parts write.
class Written {
 public:
  explicit Written(std::size_t most) { ranges_.reserve(most); }
  void add(const std::byte* begin, std::size_t bytes) {
    if (bytes == 0) return;
    if (ranges_.empty() || begin < first_) first_ = begin;
    if (ranges_.empty() || begin + bytes > end_) end_ = begin + bytes;
    ranges_.push_back({begin, bytes});
  }
  bool has(const std::byte* begin, std::size_t bytes) const {
    if (ranges_.empty() || begin >= end_ || begin + bytes <= first_) return false;
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
      return overlap(range.begin, range.bytes, begin, bytes);
    });
  }

 private:
  struct Range {
    const std::byte* begin;
    std::size_t bytes;
  };
  std::vector<Range> ranges_;
  const std::byte *first_ = nullptr, *end_ = nullptr;
};

}  // namespace

std::size_t count_alike(std::span<const Call* const> calls, const PlanningFacts& me,
                        const CallSettingsTable& settings) {
  if (calls.size() < 2 || !is_fusible(*calls[0])) return 1;
  const Limits limits = me.network ? kOverNetwork : kInMemory;
  const std::size_t unit = most_blocks(*calls[0], me.size) * bytes_of(calls[0]->dtype);
  Written written(std::min(calls.size(), kMostParts));
  std::size_t alike = 0, all = 0;
  for (const Call* call : calls.first(std::min(calls.size(), kMostParts))) {
    if (!are_alike(*calls[0], *call, settings) || call->count > limits.part / unit) break;
    all += call->count * unit;
    const BufferBytes bytes = buffer_bytes(*call, me.rank, me.size);
    if (all > limits.all) break;
    if (!is_local_at_root(call->collective)) {
      if (written.has(call->input, bytes.input)) break;
      written.add(call->output, bytes.output);
    }
    ++alike;
  }
  return std::max<std::size_t>(1, alike);
}

/// Returns 0 in place of `most`, if that is the shortest.
std::chrono::milliseconds shortest_limit(std::span<const Call* const> calls,
                                         std::chrono::milliseconds most) {
  std::chrono::milliseconds shortest{0};
  bool has_default = false;
  for (const Call* call : calls) {
    if (call->timeout.count() == 0)
      has_default = true;
    else if (shortest.count() == 0 || call->timeout < shortest)
      shortest = call->timeout;
  }
  const bool default_is_shorter = most.count() > 0 && most <= shortest;
  return has_default && default_is_shorter ? std::chrono::milliseconds{0} : shortest;
}

/// Returns the index of the root's own block among those of its larger side.
std::size_t FusedCall::own_block() const {
  return call_.collective == Collective::broadcast ? 0
                                                   : static_cast<std::size_t>(index(call_.root));
}

std::byte* FusedCall::Memory::of(std::size_t wanted) {
  constexpr std::size_t kLine = 64;
  if (size < wanted + kLine) {
    size = round_up(wanted + kLine, 4096);
    bytes = std::make_unique_for_overwrite<std::byte[]>(size);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.get());
  return bytes.get() + (round_up(address, kLine) - address);
}

void FusedCall::begin(std::span<const Call* const> parts, const PlanningFacts& me,
                      std::chrono::milliseconds limit) {
  call_ = *parts[0];
  call_.timeout = limit;
  const bool at_root = call_.root == me.rank;
  blocks_in_ = blocks_held(call_.collective, me.size, at_root, Space::input);
  blocks_out_ = blocks_held(call_.collective, me.size, at_root, Space::output);
  const std::size_t element = bytes_of(call_.dtype);
  parts_.clear();
  call_.count = block_ = 0;
  std::uint64_t hash = parts.size();
  for (const Call* part : parts) {
    parts_.push_back({part->input, part->output, part->count * element});
    call_.count += part->count;
    hash = mix(hash, part->count);
  }
  block_ = call_.count * element;
  hash_ = static_cast<std::uint32_t>(hash ^ hash >> 32);
  own_ = !at_root || !is_local_at_root(call_.collective) ? Own::travels
         : call_.collective == Collective::gather        ? Own::taken
                                                         : Own::given;
  std::byte* const in = input_.of(block_ * std::max(blocks_in_, blocks_out_));
  call_.input = in;
  call_.output = call_.collective == Collective::broadcast ? in : output_.of(block_ * blocks_out_);
}

void FusedCall::before() {
  std::byte* to = const_cast<std::byte*>(call_.input);
  for (const Part& part : parts_) {
    for (std::size_t b = 0; b < blocks_in_; ++b)
      copy(to + b * block_, part.input + b * part.bytes, part.bytes);
    if (own_ == Own::given) copy(part.output, part.input + own_block() * part.bytes, part.bytes);
    to += part.bytes;
  }
}

Status FusedCall::after() {
  if (own_ == Own::given) return {};  // before() has done it
  const std::byte* from = call_.output;
  for (const Part& part : parts_) {
    for (std::size_t b = 0; b < blocks_out_; ++b) {
      const bool is_own = own_ == Own::taken && b == own_block();
      copy(part.output + b * part.bytes, is_own ? part.input : from + b * block_, part.bytes);
    }
    from += part.bytes;
  }
  return {};
}

}  // namespace anyccl
