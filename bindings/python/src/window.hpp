#pragma once
// One-sided operations: windows, puts and signals.

#include <memory>

#include "shapes.hpp"

namespace anyccl::python {

/// The place of a signal.
struct SignalPlace {
  int index = 0, context = 0;
};

/// This rank's part of a window, and the array behind it. It keeps its communicator alive.
class Window : public std::enable_shared_from_this<Window> {
 public:
  /// Collective.
  static std::shared_ptr<Window> make(Communicator& c, nb::handle array);

  Window(CommunicatorPtr comm, Array array) : comm_(std::move(comm)), array_(std::move(array)) {}
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  nb::object array() const { return array_.source; }
  bool is_closed() const { return closed_; }
  /// Copies `x` to `peer`, and always sends it `signal` then. `offset`: in the peer's part, in
  /// elements of `x`.
  nb::object put(nb::handle x, int peer, std::int64_t offset, SignalPlace signal,
                 const StreamPtr& stream);
  /// Collective; nothing, if it is closed.
  void close();

 private:
  CommunicatorPtr comm_;
  Array array_;
  anycclWindow_t handle_ = nullptr;
  bool closed_ = false;
};

nb::object signal(Communicator& c, int peer, SignalPlace place, const StreamPtr& stream);
nb::object wait_signal(Communicator& c, int peer, int count, SignalPlace place,
                       const StreamPtr& stream);

}  // namespace anyccl::python
