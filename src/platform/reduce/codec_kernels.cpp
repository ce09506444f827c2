// Block codecs for one instruction set: compiled several times, with ANYCCL_CODEC_KERNELS the name
// of the table. What kernels.cpp says of weak symbols holds here, too.

#include "platform/reduce/kernels.hpp"
#include "platform/reduce/kernels/codecs.hpp"
#include "platform/reduce/kernels/default_mode.hpp"
#include "platform/reduce/kernels/floats.hpp"

namespace anyccl {
namespace {

template <typename Codec>
constexpr CodecLoops loops_of() {
  return {in_default_mode<encode_blocks<Codec>>, in_default_mode<sum_blocks<Codec>>};
}

constexpr size_t kLanes = kVector / sizeof(float);

template <typename Small>
void widen_f8(float* to, const void* x, size_t count) {
  const auto* const from = static_cast<Bytes>(x);
  for (size_t first = 0; first < count; first += kLanes) {
    const size_t some = count - first < kLanes ? count - first : kLanes;
    Vector<std::uint32_t, kVector> words{};
    for (size_t i = 0; i < some; ++i) words[i] = from[first + i];
    const auto floats = Small::template widen<kVector, 0>(words);
    __builtin_memcpy(to + first, &floats, some * sizeof(float));
  }
}

template <typename Small>
void narrow_f8(void* y, const float* from, size_t count) {
  auto* const to = static_cast<unsigned char*>(y);
  for (size_t first = 0; first < count; first += kLanes) {
    const size_t some = count - first < kLanes ? count - first : kLanes;
    Vector<float, kVector> floats{};
    __builtin_memcpy(&floats, from + first, some * sizeof(float));
    const auto words = Small::template narrow<kVector, 0>(floats);
    for (size_t i = 0; i < some; ++i) to[first + i] = static_cast<unsigned char>(words[i]);
  }
}

#if defined(__F16C__) || defined(__aarch64__)

using Lanes = Halves<kVector / 2>;

void widen_f16(float* to, const void* x, size_t count) {
  const auto* const from = static_cast<Bytes>(x);
  const size_t whole = count - count % kLanes;
  for (size_t first = 0; first < whole; first += kLanes) {
    const Lanes lanes(from + 2 * first);
    __builtin_memcpy(to + first, &lanes.v, kVector);
  }
  widen<AsF16>(to + whole, from + 2 * whole, count - whole);
}

void narrow_f16(void* y, const float* from, size_t count, float divisor) {
  auto* const to = static_cast<unsigned char*>(y);
  const size_t whole = count - count % kLanes;
  for (size_t first = 0; first < whole; first += kLanes) {
    Lanes lanes(load<float, kVector>(reinterpret_cast<Bytes>(from + first)));
    if (divisor != 1) lanes /= divisor;
    const auto bits = lanes.bits();
    __builtin_memcpy(to + 2 * first, &bits, kVector / 2);
  }
  narrow<AsF16>(to + 2 * whole, from + whole, count - whole, divisor);
}

#else

void widen_f16(float* to, const void* x, size_t count) {
  widen<AsF16>(to, x, count);
}
void narrow_f16(void* y, const float* from, size_t count, float divisor) {
  narrow<AsF16>(y, from, count, divisor);
}

#endif

constexpr CodecKernels kCodecTable = {
    {in_default_mode<widen<AsF32>>, in_default_mode<widen<AsBf16>>, in_default_mode<widen_f16>},
    {in_default_mode<narrow<AsF32>>, in_default_mode<narrow<AsBf16>>, in_default_mode<narrow_f16>},
    {in_default_mode<widen_f8<F8E4M3>>, in_default_mode<widen_f8<F8E5M2>>},
    {in_default_mode<narrow_f8<F8E4M3>>, in_default_mode<narrow_f8<F8E5M2>>},
    {loops_of<Rounded<AsBf16>>(), loops_of<Rounded<AsF16>>(), loops_of<Int8>(), loops_of<MxInt8>(),
     loops_of<MxFloat<4, 3, false>>(), loops_of<MxFloat<5, 2, true>>(), loops_of<Int4>()}};

}  // namespace
}  // namespace anyccl

extern "C" {
extern const anyccl::CodecKernels ANYCCL_CODEC_KERNELS;
const anyccl::CodecKernels ANYCCL_CODEC_KERNELS = anyccl::kCodecTable;
}
