#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  anyccl::fuzz::run(anyccl::fuzz::Input(std::as_bytes(std::span(data, size))));
  return 0;
}
