#pragma once
// ANYCCL_VERIFY and the settings of a communicator ask for the verification of each N-th
// collective. The limit of N is here, for those who check either.

namespace anyccl {

/// N, of each N-th collective, is at most that.
inline constexpr int kMostVerify = 1 << 20;

}  // namespace anyccl
