#pragma once

namespace anyccl {

/// N, of each N-th collective, is at most that.
inline constexpr int kMostVerify = 1 << 20;

}  // namespace anyccl
