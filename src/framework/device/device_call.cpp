#include "framework/device/device_call.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "algorithm/schedule/contract.hpp"
#include "base/error.hpp"
#include "base/round_up.hpp"

namespace anyccl {
namespace {

/// Part of a buffer.
struct Block {
  std::size_t begin, bytes;
};

/// The input or the output of a call.
struct Side {
  const char* name;                ///< As the caller knows it.
  std::byte* buffer;               ///< The program's.
  std::vector<Block> blocks;       ///< Those with bytes, in any order.
  std::size_t begin = 0, end = 0;  ///< All blocks lie between these.
  bool on_device = false;

  bool is_used() const { return end > begin; }
  const std::byte* first() const { return buffer + begin; }
  std::size_t bytes() const { return end - begin; }
};

Side one_block(const char* name, const std::byte* buffer, std::size_t bytes) {
  Side side{name, const_cast<std::byte*>(buffer), {}, 0, bytes};
  if (bytes > 0) side.blocks.push_back({0, bytes});
  return side;
}

Side blocks_apart(const char* name, const std::byte* buffer, const std::size_t* counts,
                  const std::size_t* displs, int ranks, std::size_t element) {
  Side side{name, const_cast<std::byte*>(buffer), {}};
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
    if (counts[r] == 0) continue;
    const Block block{displs[r] * element, counts[r] * element};
    side.begin = side.blocks.empty() ? block.begin : std::min(side.begin, block.begin);
    side.end = std::max(side.end, block.begin + block.bytes);
    side.blocks.push_back(block);
  }
  return side;
}

/// One of the two, as the call has it at rank `me`.
Side side_of(Space space, const Call& call, const BufferShape& shape, Rank me, int size) {
  const bool is_input = space == Space::input;
  const char* const name = is_input ? "sendbuff" : "recvbuff";
  const std::byte* const buffer = is_input ? call.input : call.output;
  if (call.collective == Collective::barrier) return one_block(name, buffer, 0);
  if (has_blocks_apart(call.collective, call.root == me, space))
    return blocks_apart(name, buffer, is_input ? call.send_counts : call.recv_counts,
                        is_input ? call.send_displs : call.recv_displs, size, bytes_of(call.dtype));
  const BufferBytes bytes = buffer_bytes(call, shape, me, size);
  return one_block(name, buffer, is_input ? bytes.input : bytes.output);
}

/// Whether this process can read the byte; also where the system does not let it look.
bool is_readable(const std::byte* at) {
  std::byte byte;
  const iovec here{&byte, 1}, there{const_cast<std::byte*>(at), 1};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
}

/// Errors: invalid_argument, if the side goes beyond its memory. That may be several ranges, one
/// behind the other, as of cuMemMap.
Status check_end(const Device& device, const Side& side, MemoryFacts facts) {
  const auto begin = reinterpret_cast<std::uintptr_t>(side.first()), end = begin + side.bytes();
  while (facts.bytes > 0 && facts.begin + facts.bytes < end) {
    const std::uintptr_t next = facts.begin + facts.bytes;
    ANYCCL_TRY(facts, device.facts(reinterpret_cast<const void*>(next)));
    if (facts.kind == MemoryKind::device && facts.device == device.number() && facts.begin == next)
      continue;
    return error(Code::invalid_argument,
                 "{} has {} bytes up to the end of its allocation on device {}, and the call needs "
                 "{}",
                 side.name, next - begin, device.number(), side.bytes());
  }
  return {};
}

/// Whether the side must be copied. Errors: see DeviceCall::make().
Result<bool> needs_copies(const Device& device, const Side& side) {
  if (!side.is_used()) return false;
  ANYCCL_TRY(const MemoryFacts facts, device.facts(side.first()));
  if (facts.kind == MemoryKind::pinned) return false;
  if (facts.kind == MemoryKind::host) {
    if (is_readable(side.first()) && is_readable(side.first() + side.bytes() - 1)) return false;
    return error(Code::invalid_argument,
                 "{} {} ({} bytes) is memory neither of the host nor, for its driver, of a device: "
                 "was it freed?",
                 side.name, static_cast<const void*>(side.first()), side.bytes());
  }
  if (facts.kind == MemoryKind::device && facts.device != device.number())
    return error(Code::invalid_argument,
                 "{} lies on device {}, but the communicator has device {}: create it while that "
                 "one is current, or use anycclCommSetDevice",
                 side.name, facts.device, device.number());
  ANYCCL_CHECK(check_end(device, side, facts));
  return true;
}

/// Where the copies of both sides lie in a block of memory of the host.
struct Layout {
  std::size_t input_at, output_at, bytes;
};

/// In place, both are one copy, too.
Layout layout_of(const Side& input, const Side& output) {
  constexpr std::size_t kLine = 64;
  const std::byte *const in = input.first(), *const out = output.first();
  if (input.on_device && output.on_device && overlap(in, input.bytes(), out, output.bytes())) {
    const std::byte* const begin = std::min(in, out);
    const std::byte* const end = std::max(in + input.bytes(), out + output.bytes());
    return {static_cast<std::size_t>(in - begin), static_cast<std::size_t>(out - begin),
            static_cast<std::size_t>(end - begin)};
  }
  const std::size_t input_bytes = input.on_device ? round_up(input.bytes(), kLine) : 0;
  return {0, input_bytes, input_bytes + (output.on_device ? output.bytes() : 0)};
}

/// `copy`: of what begins at side.first().
std::vector<DeviceCall::Piece> pieces_of(const Side& side, std::byte* copy) {
  std::vector<DeviceCall::Piece> pieces;
  for (const Block& block : side.blocks)
    pieces.push_back({side.buffer + block.begin, copy + (block.begin - side.begin), block.bytes});
  return pieces;
}

}  // namespace

Status check_recording(Device& device, DeviceQueue program) {
  ANYCCL_TRY(const bool is_recording, device.is_recording(program));
  if (!is_recording) return {};
  return error(Code::invalid_usage,
               "the stream is being captured into a graph, or another one while this is the "
               "default stream: calls of this library cannot be captured");
}

Result<bool> is_for_queues(DeviceCopies& copies, const Call& call, const BufferShape& shape,
                           Rank me, int size) {
  Device& device = copies.device();
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(device));
  Side sides[] = {side_of(Space::input, call, shape, me, size),
                  side_of(Space::output, call, shape, me, size)};
  ANYCCL_TRY(sides[0].on_device, needs_copies(device, sides[0]));
  const bool are_one = sides[0].is_used() && sides[0].first() == sides[1].first() &&
                       sides[0].bytes() == sides[1].bytes();
  if (are_one) {  // a driver is asked once
    sides[1].on_device = sides[0].on_device;
  } else {
    ANYCCL_TRY(sides[1].on_device, needs_copies(device, sides[1]));
  }
  if (!sides[0].on_device && !sides[1].on_device) return false;
  for (const Side& side : sides) {
    if (side.on_device || !side.is_used()) continue;
    ANYCCL_TRY(const MemoryFacts facts, device.facts(side.first()));
    if (facts.kind == MemoryKind::host)
      return error(Code::invalid_argument,
                   "{} is memory of the host, and the other buffer is one of device {}: in device "
                   "queues it must be pinned (cuMemHostRegister), or on the device, too",
                   side.name, device.number());
  }
  return true;
}

Result<std::shared_ptr<DeviceCall>> DeviceCall::make(std::shared_ptr<DeviceCopies> copies,
                                                     const Call& call, const BufferShape& shape,
                                                     Rank me, int size, DeviceQueue program) {
  Device& device = copies->device();
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(device));
  ANYCCL_CHECK(check_recording(device, program));
  Side input = side_of(Space::input, call, shape, me, size),
       output = side_of(Space::output, call, shape, me, size);
  ANYCCL_TRY(input.on_device, needs_copies(device, input));
  ANYCCL_TRY(output.on_device, needs_copies(device, output));
  std::shared_ptr<DeviceCall> made(new DeviceCall(std::move(copies), call, program));
  if (!input.on_device && !output.on_device) return made;
  const Layout layout = layout_of(input, output);
  ANYCCL_TRY(made->block_, made->copies_->memory().take(layout.bytes));
  if (input.on_device) {
    std::byte* const copy = made->block_->at + layout.input_at;
    made->call_.input = copy - input.begin;
    made->in_ = pieces_of(input, copy);
  }
  if (output.on_device) {
    std::byte* const copy = made->block_->at + layout.output_at;
    made->call_.output = copy - output.begin;
    made->out_ = pieces_of(output, copy);
  }
  return made;
}

DeviceCall::~DeviceCall() {
  const auto scope = DeviceScope::enter(copies_->device());
  if (!scope.ok()) return;
  if (before_ != nullptr) static_cast<void>(copies_->device().drop_moment(before_));
  if (block_ != nullptr) copies_->memory().give_back(block_);
}

Status DeviceCall::take_place() {
  Device& device = copies_->device();
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(device));
  ANYCCL_CHECK(check_recording(device, program_));
  if (before_ == nullptr) {
    ANYCCL_TRY(before_, device.make_moment());
  }
  started_ = before_;
  return device.record(program_, before_);
}

/// Also after an error, the block is not free until the copies before that are done.
Status DeviceCall::start_copies(const std::vector<Piece>& pieces, bool to_device) {
  if (pieces.empty()) return {};
  Device& device = copies_->device();
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(device));
  Status copied;
  for (const Piece& piece : pieces) {
    void* const to = to_device ? piece.on_device : piece.on_host;
    const void* const from = to_device ? piece.on_host : piece.on_device;
    if (copied.ok()) copied = device.copy(block_->queue, to, from, piece.bytes);
  }
  started_ = block_->last_use;
  const Status recorded = device.record(block_->queue, started_);
  return copied.ok() ? recorded : copied;
}

Status DeviceCall::start_input() {
  return start_copies(in_, false);
}

Status DeviceCall::start_output() {
  return start_copies(out_, true);
}

Result<bool> DeviceCall::is_there() const {
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(copies_->device()));
  return copies_->device().is_past(started_);
}

Status DeviceCall::wait(const Usable& usable) const {
  using namespace std::chrono_literals;
  for (int looks = 0;; ++looks) {
    ANYCCL_TRY(const bool there, is_there());
    if (there) return {};
    if (looks < 100) {
      std::this_thread::yield();
      continue;
    }
    ANYCCL_CHECK(usable());
    std::this_thread::sleep_for(50us);  // nothing that a device does wakes this thread
  }
}

Status DeviceCall::begin(const Usable& usable) {
  ANYCCL_CHECK(take_place());
  ANYCCL_CHECK(wait(usable));
  ANYCCL_CHECK(start_input());
  return wait(usable);
}

/// No peer can hold up copies, and when they have ended the buffer is the program's again.
Status DeviceCall::end() {
  ANYCCL_CHECK(start_output());
  return wait([] { return Status(); });
}

}  // namespace anyccl
