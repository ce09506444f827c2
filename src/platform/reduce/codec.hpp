#pragma once
// Vectors of floats as payloads of fewer bytes: blocks of elements with a common scale. Nothing
// here knows of ranks. ext/codec.h describes the functions to callers, and docs/numbers/codecs.md
// the formats.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl {

/// The values are those of anycclCodec_t, and the places of its loops in CodecKernels.
enum class Codec : std::uint8_t {
  bf16 = 0,
  f16 = 1,
  int8 = 2,
  mxint8 = 3,
  mxfp8_e4m3 = 4,
  mxfp8_e5m2 = 5,
  int4 = 6,
};

struct CodecInfo {
  std::string_view name;
  std::size_t block;                    ///< Elements.
  std::size_t code_bytes, scale_bytes;  ///< Those of a block.
};
const CodecInfo& info_of(Codec codec);
/// Errors: unsupported, naming those that there are.
Result<Codec> codec_of(int number);
Result<Codec> codec_named(std::string_view name);

/// Where vectors may be cut, whatever the codec: the next block begins there.
inline constexpr std::size_t kCodecGrain = 128;

/// Bytes of the codes, a multiple of 64, and with the scales behind them, too. The last block is
/// whole: what is not there of it is encoded as zeros.
std::size_t codes_bytes(Codec codec, std::size_t count);
std::size_t payload_bytes(Codec codec, std::size_t count);

/// Memory with `count` elements of a type that a codec has: f32, bf16 or f16. Any alignment.
struct CodecVector {
  void* data = nullptr;  ///< Only read by functions that say so.
  std::size_t count = 0;
  DType type = DType::f32;
};
/// Errors: unsupported, naming the type and the codec.
Status check_codec_type(Codec codec, DType type);

/// `x`, which is read, as a payload of payload_bytes(). Of all these functions: the type is one
/// that check_codec_type() lets pass, and payloads are as long as that; what they read may be any
/// bytes.
void encode(const CodecKernels& kernels, Codec codec, const CodecVector& x, std::byte* payload);
/// y = the sum of the payloads, added up in f32 by the aligned tree over their places
/// (docs/adr/0056), then divided and rounded to the type. 0 < divisor <= 2^24.
void decode(const CodecKernels& kernels, Codec codec, std::span<const std::byte* const> payloads,
            const CodecVector& y, std::uint32_t divisor = 1);
/// Encodes the sum that decode() computes. `payload` may be one of the payloads.
void recode(const CodecKernels& kernels, Codec codec, std::span<const std::byte* const> payloads,
            std::size_t count, std::byte* payload, std::uint32_t divisor = 1);

}  // namespace anyccl
