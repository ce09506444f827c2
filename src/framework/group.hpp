#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "framework/communicator.hpp"

namespace anyccl {

/// Calls that one thread issues together; see anycclGroupStart.
class CallGroup {
 public:
  void add(std::shared_ptr<Comm> comm, const Call& call);
  bool empty() const { return entries_.empty(); }
  /// Issues everything and returns when all is complete, with the first error.
  Status run();

 private:
  struct Entry {
    std::shared_ptr<Comm> comm;
    KeptCall kept;
    std::shared_ptr<Task> task;
  };
  std::vector<Entry> entries_;
};

}  // namespace anyccl
