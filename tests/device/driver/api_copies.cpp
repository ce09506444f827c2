// Copies, and words that streams write or wait for.

#include "calls.hpp"
#include "contexts.hpp"
#include "work.hpp"

using namespace anyccl::cuda;
using namespace anyccl::simulated;

namespace {

Address address_of(const void* at) {
  return reinterpret_cast<Address>(at);
}

}  // namespace

Error cuMemcpyAsync(Address to, Address from, std::size_t bytes, Stream stream) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return copy(to, from, bytes, stream);
}

Error cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, Stream stream) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return copy(to, address_of(from), bytes, stream);
}

Error cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, Stream stream) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return copy(address_of(to), from, bytes, stream);
}

Error cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, Stream stream) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return copy(to, from, bytes, stream);
}

Error cuMemcpyPeerAsync(Address to, Context to_context, Address from, Context from_context,
                        std::size_t bytes, Stream stream) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  if (!is_context(to_context) || !is_context(from_context)) return kInvalidContext;
  return copy(to, from, bytes, stream);
}

Error cuMemsetD8Async(Address to, unsigned char value, std::size_t bytes, Stream stream) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return fill(to, value, bytes, stream);
}

Error cuStreamWaitValue32_v2(Stream stream, Address at, std::uint32_t value, unsigned flags) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return wait_for_word(stream, at, value, flags);
}

Error cuStreamWaitValue64_v2(Stream stream, Address at, std::uint64_t value, unsigned flags) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return wait_for_word(stream, at, value, flags);
}

Error cuStreamWriteValue32_v2(Stream stream, Address at, std::uint32_t value, unsigned flags) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return write_word(stream, at, value, flags);
}

Error cuStreamWriteValue64_v2(Stream stream, Address at, std::uint64_t value, unsigned flags) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return write_word(stream, at, value, flags);
}
