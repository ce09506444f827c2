#include "window.hpp"

#include <utility>

#include "group.hpp"

namespace anyccl::python {
namespace {

nb::object run(Communicator& c, Request request, const StreamPtr& stream, Request::Start start) {
  request.extras_on_demand().start = std::move(start);
  Options how;
  how.stream = stream;
  return c.run(std::move(request), how);
}

}  // namespace

std::shared_ptr<Window> Window::make(Communicator& c, nb::handle array) {
  need_no_group("window");
  auto window = std::make_shared<Window>(c.shared_from_this(), Array::output(array, "array"));
  const Communicator::Call turn(c);
  const Array& mine = window->array_;
  raise_unless_ok(unlocked([&] {
    return anycclCommWindowRegister(turn.handle, mine.data, mine.bytes(), &window->handle_,
                                    ANYCCL_WIN_DEFAULT);
  }));
  c.keep_window(window->handle_, mine);
  return window;
}

nb::object Window::put(nb::handle x, int peer, std::int64_t offset, SignalPlace signal,
                       const StreamPtr& stream) {
  if (closed_) raise(anycclInvalidUsage, "the window is closed");
  if (offset < 0) raise_invalid("offset is " + std::to_string(offset));
  Array in = Array::input(x, "x");
  const auto dtype = static_cast<anycclDataType_t>(in.dtype);
  std::size_t at = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(offset), info(in.dtype).bytes, &at))
    raise_invalid("offset is " + std::to_string(offset) + " elements, which no window has");
  const std::size_t count = in.count();
  const std::byte* const from = in.data;
  Request r = request_of(std::move(in), Result());
  r.extras_on_demand().context = shared_from_this();
  return run(*comm_, std::move(r), stream,
             [=, window = handle_](anycclComm_t comm, anycclStream_t s) {
               return anycclPutSignal(from, count, dtype, peer, window, at, signal.index,
                                      signal.context, 0, comm, s);
             });
}

void Window::close() {
  if (closed_) return;
  need_no_group("close");
  const Communicator::Call turn(*comm_);
  closed_ = true;
  raise_unless_ok(unlocked([&] { return anycclCommWindowDeregister(turn.handle, handle_); }));
  comm_->release_window(handle_);
}

nb::object signal(Communicator& c, int peer, SignalPlace place, const StreamPtr& stream) {
  return run(c, request_of(Array(), Result()), stream, [=](anycclComm_t comm, anycclStream_t s) {
    return anycclSignal(peer, place.index, place.context, 0, comm, s);
  });
}

nb::object wait_signal(Communicator& c, int peer, int count, SignalPlace place,
                       const StreamPtr& stream) {
  return run(c, request_of(Array(), Result()), stream, [=](anycclComm_t comm, anycclStream_t s) {
    anycclWaitSignalDesc_t wanted{count, peer, place.index, place.context};
    return anycclWaitSignal(1, &wanted, comm, s);
  });
}

}  // namespace anyccl::python
