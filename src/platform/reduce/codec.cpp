// Payloads of block codecs: all codes, then all scales, both from a multiple of 64 bytes on.

#include "platform/reduce/codec.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace anyccl {
namespace {

constexpr std::array<CodecInfo, kCodecs> kInfo = {{{"bf16", 32, 64, 0},
                                                   {"f16", 32, 64, 0},
                                                   {"int8", 128, 128, 2},
                                                   {"mxint8", 32, 32, 1},
                                                   {"mxfp8_e4m3", 32, 32, 1},
                                                   {"mxfp8_e5m2", 32, 32, 1},
                                                   {"int4", 32, 16, 2}}};

constexpr std::array<DType, kCodecTypes> kTypes = {DType::f32, DType::bf16, DType::f16};

/// Elements that are in the nearest cache between two steps.
constexpr std::size_t kTile = 1024;
static_assert(kTile % kCodecGrain == 0);

std::size_t type_of(DType type) {
  return static_cast<std::size_t>(std::ranges::find(kTypes, type) - kTypes.begin());
}
std::size_t blocks_of(const CodecInfo& codec, std::size_t count) {
  return (count + codec.block - 1) / codec.block;
}
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

std::string all_names() {
  std::string names;
  for (const CodecInfo& info : kInfo) {
    if (!names.empty()) names += info.name == kInfo.back().name ? " and " : ", ";
    names += info.name;
  }
  return names;
}

/// Where codes and scales of a payload are.
struct Layout {
  Layout(Codec codec, std::size_t count)
      : info(info_of(codec)), scales(codes_bytes(codec, count)) {}
  const CodecInfo& info;
  std::size_t scales;

  std::size_t codes_at(std::size_t element) const { return element / info.block * info.code_bytes; }
  std::size_t scales_at(std::size_t element) const {
    return scales + element / info.block * info.scale_bytes;
  }
  /// From `element` on, where a block begins.
  CodedBlocks blocks(const std::byte* payload, std::size_t element) const {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(payload);
    return {bytes + codes_at(element), bytes + scales_at(element)};
  }
};

/// Payloads whose blocks are added up.
class Sum {
 public:
  Sum(const CodecLoops& loops, const Layout& layout, std::span<const std::byte* const> payloads)
      : loops_(loops), layout_(layout), payloads_(payloads) {
    if (payloads.size() > few_.size()) many_.resize(payloads.size());
  }
  /// y = the whole blocks of `count` elements from `first` on.
  void operator()(float* y, std::size_t first, std::size_t count) {
    const std::span<CodedBlocks> from = many_.empty() ? std::span(few_) : std::span(many_);
    for (std::size_t k = 0; k < payloads_.size(); ++k)
      from[k] = layout_.blocks(payloads_[k], first);
    loops_.sum(y, from.data(), payloads_.size(), blocks_of(layout_.info, count));
  }

 private:
  const CodecLoops& loops_;
  const Layout& layout_;
  std::span<const std::byte* const> payloads_;
  std::array<CodedBlocks, 16> few_{};
  std::vector<CodedBlocks> many_;
};

/// Calls of(first, elements) for each tile.
template <typename Of>
void each_tile(std::size_t count, const Of& of) {
  for (std::size_t first = 0; first < count; first += kTile)
    of(first, std::min(kTile, count - first));
}

std::byte* element(const CodecVector& x, std::size_t i) {
  return static_cast<std::byte*>(x.data) + i * (x.type == DType::f32 ? 4 : 2);
}

/// Encodes one tile: whole blocks.
void put(const CodecLoops& loops, const Layout& layout, std::byte* payload, std::size_t first,
         const float* x, std::size_t count) {
  auto* const bytes = reinterpret_cast<unsigned char*>(payload);
  loops.encode(bytes + layout.codes_at(first), bytes + layout.scales_at(first), x,
               blocks_of(layout.info, count));
}

/// Bytes between the parts, and behind them, so that equal vectors have equal payloads.
void clear_gaps(const Layout& layout, std::size_t count, std::byte* payload, std::size_t bytes) {
  const std::size_t blocks = blocks_of(layout.info, count);
  std::fill(payload + blocks * layout.info.code_bytes, payload + layout.scales, std::byte{0});
  std::fill(payload + layout.scales + blocks * layout.info.scale_bytes, payload + bytes,
            std::byte{0});
}

}  // namespace

const CodecInfo& info_of(Codec codec) {
  return kInfo[static_cast<std::size_t>(codec)];
}

Result<Codec> codec_of(int number) {
  if (number >= 0 && static_cast<std::size_t>(number) < kInfo.size())
    return static_cast<Codec>(number);
  return error(Code::unsupported, "codec {}: there are 0 to {}, {}", number, kInfo.size() - 1,
               all_names());
}

Result<Codec> codec_named(std::string_view name) {
  for (std::size_t i = 0; i < kInfo.size(); ++i)
    if (kInfo[i].name == name) return static_cast<Codec>(i);
  return error(Code::unsupported, "codec {}: there are {}", name, all_names());
}

std::size_t codes_bytes(Codec codec, std::size_t count) {
  const CodecInfo& info = info_of(codec);
  return aligned(blocks_of(info, count) * info.code_bytes);
}

std::size_t payload_bytes(Codec codec, std::size_t count) {
  const CodecInfo& info = info_of(codec);
  return codes_bytes(codec, count) + aligned(blocks_of(info, count) * info.scale_bytes);
}

Status check_codec_type(Codec codec, DType type) {
  if (type_of(type) < kCodecTypes) return {};
  return error(Code::unsupported,
               "datatype {} with codec {}: codecs are of float32, bfloat16 and float16",
               static_cast<int>(type), info_of(codec).name);
}

void encode(const CodecKernels& kernels, Codec codec, const CodecVector& x, std::byte* payload) {
  const Layout layout(codec, x.count);
  const CodecLoops& loops = kernels.of[static_cast<std::size_t>(codec)];
  const auto widen = kernels.widen[type_of(x.type)];
  alignas(64) float tile[kTile];
  each_tile(x.count, [&](std::size_t first, std::size_t count) {
    if (x.type == DType::f32 && count == kTile)
      return put(loops, layout, payload, first, reinterpret_cast<const float*>(element(x, first)),
                 count);
    if (count < kTile) std::fill(tile + count, tile + kTile, 0.0F);
    widen(tile, element(x, first), count);
    put(loops, layout, payload, first, tile, count);
  });
  clear_gaps(layout, x.count, payload, payload_bytes(codec, x.count));
}

void decode(const CodecKernels& kernels, Codec codec, std::span<const std::byte* const> payloads,
            const CodecVector& y, std::uint32_t divisor) {
  const Layout layout(codec, y.count);
  Sum sum(kernels.of[static_cast<std::size_t>(codec)], layout, payloads);
  const auto narrow = kernels.narrow[type_of(y.type)];
  alignas(64) float tile[kTile];
  each_tile(y.count, [&](std::size_t first, std::size_t count) {
    if (y.type == DType::f32 && count == kTile && divisor == 1)
      return sum(reinterpret_cast<float*>(element(y, first)), first, count);
    sum(tile, first, count);
    narrow(element(y, first), tile, count, static_cast<float>(divisor));
  });
}

void recode(const CodecKernels& kernels, Codec codec, std::span<const std::byte* const> payloads,
            std::size_t count, std::byte* payload, std::uint32_t divisor) {
  const Layout layout(codec, count);
  const CodecLoops& loops = kernels.of[static_cast<std::size_t>(codec)];
  Sum sum(loops, layout, payloads);
  alignas(64) float tile[kTile];
  each_tile(count, [&](std::size_t first, std::size_t elements) {
    sum(tile, first, elements);
    if (divisor != 1) kernels.narrow[0](tile, tile, elements, static_cast<float>(divisor));
    put(loops, layout, payload, first, tile, elements);
  });
  clear_gaps(layout, count, payload, payload_bytes(codec, count));
}

}  // namespace anyccl
