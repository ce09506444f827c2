#pragma once

#include <cstdint>

namespace anyccl {

/// How often this process has become another one by fork: what was made under another number
/// belongs to the parent.
std::uint64_t fork_generation();

}  // namespace anyccl
