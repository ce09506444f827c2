#pragma once
// Docstrings, in NumPy's style: messages, barriers, and objects.

namespace anyccl::python::docs {

constexpr const char kBarrier[] =
    R"(Return when all ranks have called it; with ``async_op=True``, a `Work` that is complete then.

In a stream: later work of the stream starts when the streams of all ranks have come to it.)";
constexpr const char kSend[] =
    R"(Send an array to rank `dst`, which receives as many elements of the same type with the same
tag.

May return before the receiver has called `recv`, but need not: to exchange, use `anyccl.group`, or
``async_op=True`` on both sides, with contiguous arrays. The `Work` gives None. Tags are from 0 to
2147483647.)";
constexpr const char kRecv[] = R"(Receive from rank `src` into the array `out`, and return it.

Without `src`: the next fitting message of any rank. With ``async_op=True``, `Work.source` tells
which, but not in a group that has streams, puts, signals, `all_to_all_w` or exchanges with
neighbours. Any thread, also while others call collectives.)";
constexpr const char kAllToAllW[] =
    R"(Exchange arrays of different shapes and types: ``xs[j]`` goes to rank j.

Runs as messages between the pairs that exchange anything.

Parameters
----------
xs : sequence of array or None
    One for each rank; None, or no elements: nothing is sent.
outs : sequence of array or None
    ``outs[i]`` becomes what rank i sends here, with as many elements of the same type. None:
    nothing.
stream
    As of every operation; see `Communicator`.

Returns
-------
sequence
    `outs`.)";
constexpr const char kAllGatherObject[] =
    R"(Give every rank the objects of all, in a list in the order of ranks.

Objects travel by `pickle`, so only between programs that trust each other. Small ones (up to 500
bytes or so) take one round, others two, which are one place in the order of calls, and which go on
if a signal ends the call. `timeout` of the communicator is that of each round. Not in a group.

Raises
------
InvalidUsage
    On all ranks, naming the rank whose object cannot be pickled; on that one, the error of
    `pickle`. The communicator goes on.)";
constexpr const char kBroadcastObject[] =
    R"(Give every rank the object `obj` of the root; on other ranks it is not used.

Objects travel by `pickle`, so only between programs that trust each other. Small ones (up to 500
bytes or so) take one round, others two, which are one place in the order of calls, and which go on
if a signal ends the call. `timeout` of the communicator is that of each round. Not in a group.

Raises
------
InvalidUsage
    On all ranks, naming the rank whose object cannot be pickled; on that one, the error of
    `pickle`. The communicator goes on.)";
constexpr const char kGatherObject[] =
    R"(Give the root the objects of all ranks, in a list in the order of ranks; others get None.

Objects travel by `pickle`, so only between programs that trust each other. Small ones (up to 500
bytes or so) take one round, others two, which are one place in the order of calls, and which go on
if a signal ends the call. `timeout` of the communicator is that of each round. Not in a group.

Raises
------
InvalidUsage
    On all ranks, naming the rank whose object cannot be pickled; on that one, the error of
    `pickle`. The communicator goes on.)";
constexpr const char kScatterObject[] =
    R"(Give rank r the object ``objs[r]`` of the root; on other ranks `objs` is not used.

Objects travel by `pickle`, so only between programs that trust each other. Small ones (up to 500
bytes or so) take one round, others two, which are one place in the order of calls, and which go on
if a signal ends the call. `timeout` of the communicator is that of each round. Not in a group.

Raises
------
InvalidUsage
    On all ranks, naming the rank whose object cannot be pickled; on that one, the error of
    `pickle`. The communicator goes on.)";
constexpr const char kSendObject[] =
    R"(Send an object to rank `dst`, which calls `recv_object` with the same tag.

An object that cannot be pickled is an error on both sides.)";
constexpr const char kRecvObject[] =
    R"(Receive an object of rank `src`, or, without it, the next one of any rank, and return it.

Raises
------
InvalidUsage
    If the sender's object cannot be pickled, or the message is an array. The communicator goes on.
Timeout
    Nothing has come within the time limit. The communicator goes on.)";

}  // namespace anyccl::python::docs
