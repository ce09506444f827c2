#pragma once
// A doorbell ends the sleep of a thread that waits for sockets with poll(2). Each context has one,
// which other threads ring when they bring it frames. base/doorbell.hpp serves threads that wait
// for no socket.

#include <mutex>
#include <optional>

namespace anyccl::link {

/// A doorbell has a descriptor only while a thread sleeps: those that sleep at the same time borrow
/// one each from the process.
class Doorbell {
 public:
  /// To be polled for reading until answer(); none: it has rung already. -1: this process has
  /// no descriptor left for it, so nothing ends the sleep.
  std::optional<int> listen();
  /// After listen(): what rang until now is forgotten.
  void answer();
  /// Ends the sleep of the thread that listens, or the next one. Any thread.
  void ring();

 private:
  std::mutex mutex_;
  int fd_ = -1;  // While a thread listens.
  bool rung_ = false;
};

}  // namespace anyccl::link
