#pragma once
// One-sided operations of the C++ interface: windows, puts, signals. Header-only over the C
// interface (anyccl.h), which has all rules.

#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "anyccl/anyccl.hpp"

namespace anyccl {

/// Which of a rank's signals.
struct SignalSlot {
  int index = 0;    ///< 0..ANYCCL_NUM_SIGNALS - 1
  int context = 0;  ///< 0..ANYCCL_NUM_CONTEXTS - 1
};

/// What a wait waits for: `count` signals of rank `from`.
struct Signals {
  Rank from{0};
  int count = 1;
  SignalSlot slot = {};
};

/// A part of memory on every rank of a communicator, into which all of them may put. It ends before
/// its communicator does.
///
/// Threads: any; create() and deregister() are collective, in the same order on all ranks.
class Window {
 public:
  /// Collective: `bytes` at `at` become this rank's part; sizes may differ. Not in
  /// a group(). See anycclCommWindowRegister.
  static Result<Window> create(Communicator& comm, void* at, std::size_t bytes,
                               int flags = ANYCCL_WIN_DEFAULT) {
    if (detail::open_group != nullptr)
      return detail::refused(Code::invalid_usage,
                             "Window::create: there is no value before the group ends; create it "
                             "before the group");
    Window window;
    window.comm_ = comm.handle();
    const Status status = detail::status_of(
        anycclCommWindowRegister(comm.handle(), at, bytes, &window.handle_, flags), comm.handle());
    if (!status.ok()) return status;
    return window;
  }
  template <typename T>
  static Result<Window> create(Communicator& comm, std::vector<T>& memory,
                               int flags = ANYCCL_WIN_DEFAULT) {
    return create(comm, memory.data(), memory.size() * sizeof(T), flags);
  }

  Window() = default;
  Window(Window&& other) noexcept
      : comm_(other.comm_), handle_(std::exchange(other.handle_, nullptr)) {}
  Window& operator=(Window&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  /// As deregister(): outside a group() it waits for the other ranks; the memory may be freed then.
  ~Window() { static_cast<void>(deregister()); }

  /// Collective: returns (in a group() its end does) when all that the others put here has landed.
  Status deregister() {
    if (handle_ == nullptr) return {};
    return detail::status_of(anycclCommWindowDeregister(comm_, std::exchange(handle_, nullptr)),
                             comm_);
  }
  /// Writes `data` into the part of `peer`, `offset` bytes from its beginning, then signals.
  /// Without stream and group() it returns when `data` may be reused. Order, progress: see
  /// anycclPutSignal.
  Status put_signal(View data, Rank peer, std::size_t offset, SignalSlot slot = {},
                    const Stream& stream = {}) {
    return detail::status_of(
        anycclPutSignal(data.data, data.count, static_cast<anycclDataType_t>(data.dtype),
                        index(peer), handle_, offset, slot.index, slot.context, 0, comm_,
                        stream.handle()),
        comm_);
  }
  anycclWindow_t handle() const { return handle_; }

 private:
  anycclComm_t comm_ = nullptr;
  anycclWindow_t handle_ = nullptr;
};

/// A signal without data. See anycclSignal.
inline Status signal(Communicator& comm, Rank peer, SignalSlot slot = {},
                     const Stream& stream = {}) {
  return detail::status_of(
      anycclSignal(index(peer), slot.index, slot.context, 0, comm.handle(), stream.handle()),
      comm.handle());
}

/// Without stream and group() it returns when all of these have arrived. See anycclWaitSignal.
inline Status wait_signal(Communicator& comm, std::span<const Signals> wanted,
                          const Stream& stream = {}) {
  std::vector<anycclWaitSignalDesc_t> all;
  for (const Signals& one : wanted)
    all.push_back({one.count, index(one.from), one.slot.index, one.slot.context});
  return detail::status_of(
      anycclWaitSignal(static_cast<int>(all.size()), all.data(), comm.handle(), stream.handle()),
      comm.handle());
}
inline Status wait_signal(Communicator& comm, std::initializer_list<Signals> wanted,
                          const Stream& stream = {}) {
  return wait_signal(comm, std::span(wanted.begin(), wanted.size()), stream);
}

}  // namespace anyccl
