#pragma once
// Docstrings, in NumPy's style: streams and events.

namespace anyccl::python::docs {

constexpr const char kStream[] =
    R"(A queue of work: operations, functions, and waits for events of other streams.

Work is done one after the other in a thread of its own, at the same time as the program. An
operation with ``stream=`` has its place in the order of its communicator when the call returns, and
starts when earlier work in the stream is done. Later work sees its result. What fails does not end
the stream: functions still run, and operations of other communicators, too.

Dropped, it still does its work. As a context manager it synchronizes at the end of the block,
unless that raises. Any thread. Work that a stream has not done when the interpreter ends is left
undone, after at most two seconds for functions that are running.

Examples
--------
>>> with anyccl.Stream() as stream:
...     comm.all_reduce(x, out=x, stream=stream)
...     stream.run(lambda: numpy.sqrt(x, out=x)))";
constexpr const char kStreamSynchronize[] =
    R"(Return when all work that is in the stream now is done. Lets signals end the wait.

Raises
------
InProgress
    If it is not after `timeout` seconds; it goes on.
Error
    The first error of the stream, also every later time. If that is the exception of a function of
    this stream: that exception.
InvalidUsage
    In a function that the stream itself runs.)";
constexpr const char kStreamQuery[] =
    R"(Whether all work is done. Never blocks. Raises the first error of the stream.)";
constexpr const char kStreamDone[] =
    R"(Whether all work is done, or the stream has an error. Never blocks.)";
constexpr const char kStreamRun[] =
    R"(Call ``function()`` when earlier work in the stream is done, also if that has failed.

It runs in the thread of the stream; later work starts when it has returned. It must not wait for
its own stream, nor for operations that come after it. An exception is an error of the stream.)";
constexpr const char kStreamWaitEvent[] =
    R"(Let work that comes later in this stream wait for `event`, as it is recorded now.

An error of what it waits for is an error of this stream, too. Recording the event again later
changes nothing here.)";
constexpr const char kEvent[] =
    R"(A place in a stream's work, once it is recorded. One that never was counts as complete. Any
thread.)";
constexpr const char kEventRecord[] =
    R"(Make the event complete when all work that is in `stream` now is done, and forget where it
was.)";
constexpr const char kEventQuery[] =
    R"(Whether it is complete. Never blocks. Raises the first error of the work before it.)";
constexpr const char kEventDone[] = R"(Whether it is complete, if with an error. Never blocks.)";
constexpr const char kEventSynchronize[] =
    R"(Return when it is complete; raises the first error of the work before it.

With `timeout`, in seconds: `InProgress` if it is not by then.)";
constexpr const char kEventElapsedTime[] =
    R"(The milliseconds from when the stream of this event came to it until that of `end` did.

Raises
------
InvalidUsage, InProgress
    If one was never recorded, or is not complete.)";

}  // namespace anyccl::python::docs
