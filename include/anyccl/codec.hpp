#pragma once
// Codecs: vectors of floats as payloads of fewer bytes, and AllReduce with them between hosts
// (anyccl.hpp includes this).
//
//   auto coded = codec::AllReduce::create(comm, codec::Codec::int8);   // collective, once
//   coded->run(gradients, gradients, ReduceOp::avg);                   // float, BFloat16, Float16
//
// docs/numbers/codecs.md says by how much each codec is off, and when it pays.

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "anyccl/anyccl.h"
#include "anyccl/communicator.hpp"
#include "anyccl/status.hpp"
#include "anyccl/stream.hpp"
#include "anyccl/types.hpp"
#include "anyccl/view.hpp"

namespace anyccl::codec {

/// How elements travel; the values are those of anycclCodec_t, which describes them.
enum class Codec {
  bf16 = anycclCodecBfloat16,
  f16 = anycclCodecFloat16,
  int8 = anycclCodecInt8,
  mxint8 = anycclCodecMxInt8,
  mxfp8_e4m3 = anycclCodecMxFloat8e4m3,
  mxfp8_e5m2 = anycclCodecMxFloat8e5m2,
  int4 = anycclCodecInt4,
};

/// The codec of this name. Errors: unsupported, naming those that there are.
inline Result<Codec> named(const std::string& name) {
  anycclCodec_t codec{};
  const Status status = detail::status_of(anycclCodecFromName(name.c_str(), &codec));
  if (!status.ok()) return status;
  return static_cast<Codec>(codec);
}

/// The size of the payload of `count` elements.
inline Result<std::size_t> bytes(Codec codec, std::size_t count) {
  std::size_t bytes = 0;
  const Status status =
      detail::status_of(anycclCodecBytes(static_cast<anycclCodec_t>(codec), count, &bytes));
  if (!status.ok()) return status;
  return bytes;
}

/// `x` as a payload. An infinity or a NaN makes its block NaN, where the codec has scales.
///
/// Shapes: payload.size() == bytes(codec, x.count); x is of f32, bf16 or f16. They do not overlap.
/// Threads: any, as for all functions here.
/// Errors: invalid_argument, unsupported.
inline Status encode(Codec codec, View x, std::span<std::byte> payload) {
  return detail::status_of(anycclCodecEncode(static_cast<anycclCodec_t>(codec), x.data, x.count,
                                             static_cast<anycclDataType_t>(x.dtype), payload.data(),
                                             payload.size()));
}
/// Encodes into memory of its own.
inline Result<std::vector<std::byte>> encode(Codec codec, View x) {
  const Result<std::size_t> size = bytes(codec, x.count);
  if (!size.ok()) return size.status();
  std::vector<std::byte> payload(*size);
  const Status status = encode(codec, x, payload);
  if (!status.ok()) return status;
  return payload;
}

/// y = the sum of the payloads, in f32, by the tree that reductions have, and rounded once. Their
/// bytes may be anyone's.
///
/// Shapes: one payload or more, each of bytes(codec, y.count); y is of f32, bf16 or f16. No
/// overlaps.
/// Errors: invalid_argument, unsupported.
inline Status decode(Codec codec, std::span<const std::span<const std::byte>> payloads, View y) {
  const std::size_t size = payloads.empty() ? 0 : payloads[0].size();
  std::vector<const void*> at;
  for (const std::span<const std::byte> payload : payloads) {
    if (payload.size() != size)
      return detail::refused(Code::invalid_argument, "payloads have " + std::to_string(size) +
                                                         " and " + std::to_string(payload.size()) +
                                                         " bytes");
    at.push_back(payload.data());
  }
  return detail::status_of(anycclCodecDecode(static_cast<anycclCodec_t>(codec), at.data(),
                                             at.size(), size, y.data, y.count,
                                             static_cast<anycclDataType_t>(y.dtype)));
}
/// y = the elements of one payload.
inline Status decode(Codec codec, std::span<const std::byte> payload, View y) {
  return decode(codec, std::span(&payload, 1), y);
}

/// An AllReduce in which vectors travel between hosts as payloads of a codec. See anycclCodedCreate
/// and anycclCodedAllReduce.
///
/// Threads: any; one call at a time, the others wait. None is in a call when it is destroyed.
/// Order:   calls come in the same order on all ranks. It has communicators of its own, so other
///          threads may call the one that it was made of meanwhile, in any order with them.
class AllReduce {
 public:
  /// Collective over `comm`. `everywhere`: each rank counts as a host. `if_slow`: it is measured
  /// first, and only what the codec makes faster is coded. Errors: invalid_usage naming two ranks
  /// that differ; unsupported at a level of reproducibility that contradicts; those of a split.
  static Result<AllReduce> create(const Communicator& comm, Codec codec, bool everywhere = false,
                                  bool if_slow = false) {
    AllReduce made;
    const Status status =
        detail::status_of(anycclCodedCreate(&made.handle_, static_cast<anycclCodec_t>(codec),
                                            everywhere ? 1 : 0, if_slow ? 1 : 0, comm.handle()),
                          comm.handle());
    if (!status.ok()) return status;
    return made;
  }
  /// Whether elements of this type travel as payloads. Errors: unsupported.
  Result<bool> uses_codec(DType dtype) const {
    int is = 0;
    const Status status =
        detail::status_of(anycclCodedUsesCodec(handle_, static_cast<anycclDataType_t>(dtype), &is));
    if (!status.ok()) return status;
    return is != 0;
  }
  AllReduce() = default;
  AllReduce(AllReduce&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  AllReduce& operator=(AllReduce&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  AllReduce(const AllReduce&) = delete;
  AllReduce& operator=(const AllReduce&) = delete;
  ~AllReduce() { static_cast<void>(anycclCodedDestroy(handle_)); }

  /// out = the sum or average over all ranks of `in`, bitwise equal on all of them. Returns when it
  /// is there.
  ///
  /// Shapes: in.count == out.count, of one dtype: f32, bf16 or f16. `out` may be `in`.
  /// Errors: unsupported, invalid_argument; invalid_usage where ranks differ.
  Status run(View in, View out, ReduceOp op) {
    if (in.count != out.count || in.dtype != out.dtype)
      return detail::refused(Code::invalid_argument,
                             "in has " + std::to_string(in.count) + " elements and out " +
                                 std::to_string(out.count) + ", or they are of two types");
    return detail::status_of(anycclCodedAllReduce(in.data, out.data, in.count,
                                                  static_cast<anycclDataType_t>(in.dtype),
                                                  static_cast<anycclRedOp_t>(op), handle_));
  }
  /// Takes leave of the other ranks, which do so, too.
  Status destroy() {
    return detail::status_of(anycclCodedDestroy(std::exchange(handle_, nullptr)));
  }
  anycclCoded_t handle() const { return handle_; }

 private:
  anycclCoded_t handle_ = nullptr;
};

}  // namespace anyccl::codec
