#include "base/error.hpp"

#include <cstring>

#include "base/descriptor_limit.hpp"

namespace anyccl {

std::string system_reason(int number) {
  char buffer[128];
  const char* reason = ::strerror_r(number, buffer, sizeof buffer);
  if (number != EMFILE) return reason;
  return fmt::format(
      "{}: this process has used up the {} descriptors that it may have (`ulimit -n`)", reason,
      descriptor_limit());
}

}  // namespace anyccl
