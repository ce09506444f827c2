#pragma once

namespace anyccl::test {

/// Sanitizers take several times as long, so tests of theirs have smaller sizes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace anyccl::test
