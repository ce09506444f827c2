// The table of all ranks' hellos, as the root server sends it.

#include "platform/bootstrap/group/table.hpp"

#include "input.hpp"

namespace anyccl::fuzz {

void run(Input input) {
  const std::uint32_t size = input.take<std::uint16_t>() % 300;
  const auto encoded = input.rest();
  const auto hellos = bootstrap::decode_table(encoded, size);
  if (hellos.ok() && hellos->size() != size) std::abort();
}

}  // namespace anyccl::fuzz
