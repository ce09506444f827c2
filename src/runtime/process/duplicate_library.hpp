#pragma once
// A process that uses two copies of the library is refused: they would not know of each
// other.

#include "anyccl/status.hpp"

namespace anyccl {

/// Two copies of the library in one process would not know of each other's communicators and
/// memory. Errors: invalid_usage naming both files, if another copy is in use. Else this one is in
/// use from now.
Status refuse_duplicate_library();

}  // namespace anyccl
