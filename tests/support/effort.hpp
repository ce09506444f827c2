#pragma once
// How much a test tries. `make test` runs short forms. `make test-all` runs the long forms, too:
// the ctests long/..., which are the same programs with TESTS_LONG in their environment.

#include <cstdlib>

namespace anyccl::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline bool is_long() {
  static const bool asked = std::getenv("TESTS_LONG") != nullptr;
  return asked;
}

/// How often, how many or how large, by how long the test may take. Sanitizers take several times
/// as long.
template <typename T>
T effort(T sanitized, T short_form, T long_form) {
  return is_long() ? long_form : kSanitized ? sanitized : short_form;
}

}  // namespace anyccl::test
