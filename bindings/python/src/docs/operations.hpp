#pragma once
// Docstrings, in NumPy's style: works and groups.

namespace anyccl::python::docs {

constexpr const char kWork[] = R"(An operation that was issued with ``async_op=True``.

It keeps its arrays alive until it is complete; dropped before that, it leaves them to its
communicator. As a context manager it waits at the end of the block, unless that raises. Any thread
may use it. One of a group can be waited for after the group's block.)";
constexpr const char kWorkWait[] =
    R"(Return the result when the operation is complete; may be called again.

Parameters
----------
timeout : float, optional
    Seconds to wait at most. The operation goes on after that: wait again, or give it a `limit`.

Raises
------
InProgress
    If it is not complete after `timeout`.
Error
    The failure of the operation, or of its group; with a stream in a group, the first error of the
    stream. See `Communicator`.)";
constexpr const char kWorkLimit[] =
    R"(Make the operation fail, and its communicator, if it takes longer than `seconds` from now on.

In place of the time limit of its call. For a collective that waits for its turn it counts from its
turn. None: what ``ANYCCL_OP_TIMEOUT`` says, or half an hour. ``float("inf")``: it may take for
ever.)";
constexpr const char kWorkTest[] =
    R"(Whether the operation is complete. Makes progress, never blocks.

Raises
------
Error
    If it has failed: as `wait`.)";
constexpr const char kWorkSource[] =
    R"(The rank that a complete `recv` came from; an error for other operations, and in some groups:
see `Communicator.recv`.)";
constexpr const char kWorkDone[] =
    R"(Whether the operation is complete or has failed. Makes progress, never blocks.)";
constexpr const char kGroup[] =
    R"(Make a context manager: what this thread calls in its block is started together, at its end.

The end of the block returns when all operations without a stream are complete, so sends and
receives between them, also of several communicators, cannot wait for each other. Those with streams
start together when their streams come to them. Small collectives that follow each other in one
communicator travel as one, so the calls of a group are the same on all ranks, messages aside, and
do not depend on each other.

Inside the block a call returns the array that has the result after the block (``out``, or a new
one); with ``async_op=True``, a `Work` that can be waited for after the block. Groups may be nested:
the outermost one starts everything. If the outermost block raises, nothing is started. Calls that
have their result when they return, as `Communicator.split`, objects, `Communicator.route` and its
exchanges, are refused.

Raises
------
Error
    At the end of the block: the first error of its operations.)";

constexpr const char kSequence[] =
    R"(Make a context manager: the calls of its block are one place in the order of calls.

Until its end, collectives of other threads on ``comm`` wait, and so do splits and
windows; sends, receives, puts and signals do not. For work of several calls, as an exchange of
sizes and then of data, beside threads with calls of their own. Local. The collectives of
objects, `Communicator.split` and its like are one place in the order by themselves.

Raises
------
InvalidUsage
    In a group; in such a block of this thread, also from collectives of objects; while a
    communicator is made from ``comm`` with ``wait=False``.
Timeout
    At the time limit of ``comm``, where another thread is in such a block; also from calls that
    wait for one.)";

}  // namespace anyccl::python::docs
