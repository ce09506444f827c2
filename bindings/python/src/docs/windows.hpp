#pragma once
// Docstrings, in NumPy's style: one-sided operations.

namespace anyccl::python::docs {

constexpr const char kWindow[] =
    R"(An array of each rank into which all ranks may put, made by `Communicator.window`.

As a context manager it is closed at the end of the block, on all ranks, unless the block raises.)";
constexpr const char kWindowCreate[] =
    R"(Let all ranks put into `array`. Collective; not in a group.

Parameters
----------
array : writable array in C order
    Of any shape and type, which may differ between ranks. The communicator keeps it alive until the
    window is closed, or it ends itself.

Returns
-------
Window)";
constexpr const char kWindowArray[] = R"(The array of this rank.)";
constexpr const char kWindowPut[] =
    R"(Copy `x` into the array of rank `peer`, which calls nothing for it, and then signal.

Returns when `x` may be changed. A rank that has waited for the signal sees the data, also of puts
before it.

Parameters
----------
x : array
peer : int
offset : int
    Where in the peer's array, in elements of the type of `x`.
signal, context : int
    The signal, 0..255, and its context, 0..15.
stream : Stream, optional

Raises
------
InvalidArgument
    Naming what does not fit the peer's array.)";
constexpr const char kWindowClose[] =
    R"(End the window. Collective; not in a group. Returns when what other ranks have put has
arrived.)";
constexpr const char kSignal[] =
    R"(Signal to rank `peer`, without data.

Parameters
----------
peer : int
signal, context : int
    The signal, 0..255, and its context, 0..15.
stream : Stream, optional)";
constexpr const char kWaitSignal[] =
    R"(Wait until rank `peer` has signalled `count` times, and use these signals up.

Parameters
----------
peer : int
count : int
signal, context : int
    As of `signal` and `Window.put`.
stream : Stream, optional)";

}  // namespace anyccl::python::docs
