#include <cstring>
#include <vector>

#include "faults.hpp"
#include "memory.hpp"
#include "settings.hpp"
#include "streams.hpp"
#include "timing.hpp"
#include "work.hpp"

namespace anyccl::simulated {
namespace {

using Kind = Place::Kind;

void move_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (!is_chaotic()) {
    std::memmove(to, from, bytes);
    return;
  }
  const std::uint64_t bits = random_bits();
  if (bits % 3 == 0) {  // reads early, writes late
    const std::vector<std::byte> read(from, from + bytes);
    dither();
    std::memcpy(to, read.data(), bytes);
    return;
  }
  const std::size_t cut = bytes > 64 ? (bits >> 8) % bytes : bytes;
  const bool is_last_part_first = bits % 3 == 1;
  const auto move_part = [&](bool last) {
    if (last)
      std::memmove(to + cut, from + cut, bytes - cut);
    else
      std::memmove(to, from, cut);
  };
  move_part(is_last_part_first);
  dither();
  move_part(!is_last_part_first);
}

double time_of(std::size_t bytes, double rate) {
  return static_cast<double>(bytes) / rate;
}

/// Memory of the host that is not pinned: done when the call returns, as by cudaMemcpyAsync().
cuda::Error copy_pageable(const Place& to, const Place& from, cuda::Address to_address,
                          cuda::Address from_address, std::size_t bytes, cuda::Stream stream) {
  auto* const target = to.kind == Kind::device ? to.at : reinterpret_cast<std::byte*>(to_address);
  const auto* const source =
      from.kind == Kind::device ? from.at : reinterpret_cast<const std::byte*>(from_address);
  TicketPtr ticket;
  const auto run = [=](double start) {
    std::memmove(target, source, bytes);
    return start + settings().model.copy + time_of(bytes, settings().model.link);
  };
  if (const cuda::Error error = push(stream, run, {}, &ticket); error != cuda::kSuccess)
    return error;
  wait_for(ticket);
  return is_lost() ? cuda::kLaunchFailed : cuda::kSuccess;
}

}  // namespace

cuda::Error copy(cuda::Address to, cuda::Address from, std::size_t bytes, cuda::Stream stream) {
  if (bytes == 0) return cuda::kSuccess;
  const Place target = find(to, bytes), source = find(from, bytes);
  if (target.kind == Kind::none || source.kind == Kind::none) {
    const bool has_device = target.kind == Kind::device || source.kind == Kind::device;
    if (!settings().pageable || !has_device) return cuda::kInvalidValue;
    return copy_pageable(target, source, to, from, bytes, stream);
  }
  if (target.read_only) return cuda::kInvalidValue;
  const int device = target.kind == Kind::device ? target.device : source.device;
  const bool is_inside = target.kind == source.kind;
  const Engine engine = is_inside                   ? Engine::compute
                        : target.kind == Kind::host ? Engine::out
                                                    : Engine::in;
  const Model& model = settings().model;
  const bool is_on_one_device = is_inside && target.device == source.device && device >= 0;
  const double moving = time_of(bytes, is_on_one_device ? model.device / 2 : model.link);
  return push(stream, [=, wait = model.copy](double start) {
    move_bytes(target.at, source.at, bytes);
    if (device < 0) return start + moving;
    return reserve(device, engine, start + wait, moving);
  });
}

cuda::Error fill(cuda::Address to, unsigned char value, std::size_t bytes, cuda::Stream stream) {
  if (bytes == 0) return cuda::kSuccess;
  const Place target = find(to, bytes);
  if (target.kind == Kind::none || target.read_only) return cuda::kInvalidValue;
  return push(stream, [=](double start) {
    std::memset(target.at, value, bytes);
    return start + settings().model.launch;
  });
}

}  // namespace anyccl::simulated
