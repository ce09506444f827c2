// The order of a launcher to a host.

#include "launch/order.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "base/unique_fd.hpp"
#include "input.hpp"

namespace anyccl::fuzz {

void run(Input input) {
  const UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC));
  const auto bytes = input.rest();
  if (::pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return;
  static_cast<void>(cli::read_order(file.get()));
}

}  // namespace anyccl::fuzz
