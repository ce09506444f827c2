// Block codecs for one instruction set: compiled several times, with ANYCCL_CODEC_KERNELS the name of
// the table. What kernels.cpp says of weak symbols holds here, too.

#include "platform/reduce/kernels.hpp"
#include "platform/reduce/kernels/codecs.hpp"
#include "platform/reduce/kernels/default_mode.hpp"

namespace anyccl {
namespace {

template <typename Codec>
constexpr CodecLoops loops_of() {
  return {in_default_mode<encode_blocks<Codec>>, in_default_mode<sum_blocks<Codec>>};
}

constexpr CodecKernels kCodecTable = {
    {in_default_mode<widen<AsF32>>, in_default_mode<widen<AsBf16>>, in_default_mode<widen<AsF16>>},
    {in_default_mode<narrow<AsF32>>, in_default_mode<narrow<AsBf16>>,
     in_default_mode<narrow<AsF16>>},
    {loops_of<Rounded<AsBf16>>(), loops_of<Rounded<AsF16>>(), loops_of<Int8>(), loops_of<MxInt8>(),
     loops_of<MxFloat<4, 3, false>>(), loops_of<MxFloat<5, 2, true>>(), loops_of<Int4>()}};

}  // namespace
}  // namespace anyccl

extern "C" {
extern const anyccl::CodecKernels ANYCCL_CODEC_KERNELS;
const anyccl::CodecKernels ANYCCL_CODEC_KERNELS = anyccl::kCodecTable;
}
