#pragma once
// Groups of calls, which start together.

#include <memory>
#include <vector>

#include "operation.hpp"

namespace anyccl::python {

/// What `with anyccl.group()` opens: it collects the calls of its thread, and starts them at its
/// end.
class Group : public std::enable_shared_from_this<Group> {
 public:
  /// The outermost open group of this thread, or null.
  static std::shared_ptr<Group> current();

  /// Raises InvalidUsage if it is open. Inside another group of this thread that one collects.
  void enter();
  /// Starts everything, unless the block has raised, and waits for the operations in no stream.
  /// Inside another group it leaves both to that one.
  void leave(bool raised);

  nb::object add(const CommunicatorPtr& comm, Request request, const Options& options);

 private:
  struct Entry {
    CommunicatorPtr comm;
    OperationPtr operation;
  };

  struct Entries;

  void abandon(const Outcome& why);
  void run();
  void issue_and_wait();
  void launch();

  std::vector<Entry> entries_;
  bool inner_ = false, open_ = false;
};

/// Raises InvalidUsage in a group: `what` returns a result at once.
void need_no_group(const char* what);

/// Calls of one thread that are one place in the order of a communicator's calls.
class Sequence {
 public:
  explicit Sequence(CommunicatorPtr comm) : comm_(std::move(comm)) {}
  void enter();
  void exit();

 private:
  CommunicatorPtr comm_;
  anycclComm_t handle_ = nullptr;  // while it is in a sequence
};

}  // namespace anyccl::python
