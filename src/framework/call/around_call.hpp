#pragma once
// A rank may have work before and after a collective, as packing or verification. Execution calls
// this interface for it; FusedCall and Verification implement it.

#include "anyccl/status.hpp"

namespace anyccl {

/// What a rank does beside the plan of a collective, in the memory of its program. With the
/// progress lock.
class AroundCall {
 public:
  virtual ~AroundCall() = default;
  /// Before anything is read or written.
  virtual void before() = 0;
  /// When the result is there and no peer reads this rank's memory any more, before the operation
  /// is done. Asked again if it was an error, which then ends the communicator.
  virtual Status after() = 0;
};

}  // namespace anyccl
