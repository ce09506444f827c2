// A payload of a codec, as a peer sends it: any bytes are decoded, inside the memory that there is.

#include "platform/reduce/codec.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "input.hpp"
#include "platform/reduce/isa.hpp"

namespace anyccl::fuzz {

void run(Input input) {
  const auto codec = static_cast<Codec>(input.take<std::uint8_t>() % kCodecs);
  const std::size_t count = input.take<std::uint16_t>() % 3000;
  const auto bytes = input.rest();
  const auto kernels = best_kernels();
  if (!kernels.ok()) std::abort();
  std::vector<std::byte> payload(payload_bytes(codec, count));  // without room to spare
  std::copy_n(bytes.begin(), std::min(bytes.size(), payload.size()), payload.begin());
  std::vector<float> y(count);
  const std::byte* const from[] = {payload.data(), payload.data()};
  decode(*(*kernels)->codecs, codec, from, {y.data(), count});
  for (const float one : y)
    if (std::isnan(one) && __builtin_bit_cast(std::uint32_t, one) != 0x7fc00000) std::abort();
  recode(*(*kernels)->codecs, codec, from, count, payload.data());
}

}  // namespace anyccl::fuzz
