// A library that brings, and exports, its own fmt; it is linked with all of a static libcrypto.
#include <fmt/format.h>

#include <string>

extern "C" __attribute__((visibility("default"))) int foreign_formats(int number) {
  return static_cast<int>(fmt::format("{:>8} {}", number, std::string("of its own")).size());
}
