#pragma once
// Docstrings, in NumPy's style: communicators. The rules of all operations are those of
// Communicator.

namespace anyccl::python::docs {

constexpr const char kUniqueId[] =
    R"(The name of one new communicator, by which its ranks find and trust each other.

Any process with it can join: pass it on safely, as ``bytes(id)`` or pickled. The process that
created it must live until all ranks have joined.)";
constexpr const char kUniqueIdCreate[] =
    R"(Make an id and start to listen for the ranks in this process.

Raises
------
SystemFailure, InvalidArgument
    If it cannot listen, or the environment is invalid.)";
constexpr const char kCommunicator[] = R"(One rank of a group of ranks that communicate.

Made by `from_env`, `from_unique_id` or `init_all`, and from another one by `split`, `shrink` or
`grow`. As a context manager it is destroyed at the end of the block, and aborted if the block
raises.

Arrays
    Any object in host memory with DLPack or the buffer protocol: NumPy, JAX and PyTorch arrays,
    ``array.array``, ``bytearray``. An input may be read-only, and is copied if it is not contiguous
    in C order; its elements must not change until the operation is complete, but by earlier
    operations of the communicator (or stream): it is copied when these have written. ``out`` must
    be writable, contiguous in C order, and of the result's type and shape (or have as many elements
    in one dimension, but not with displacements); it is returned. Without ``out`` the result is a
    new array of the same library as the input, or of NumPy if that library cannot take arrays over.
Order
    All ranks call the same operations in the same order; sends and receives are matched for each
    pair and direction separately. Types, shapes and operators are equal on all ranks, unless an
    operation says otherwise.
Threads
    Any thread may call a communicator, also while another one waits in it; the order of the calls
    must be the same on all ranks, so threads that call collectives must agree about it. `finalize`
    and `destroy` come when no other thread is in a call. While one is in `split`, `shrink` or
    `grow`, collectives of others on that communicator raise `InvalidUsage`; messages pass. The
    interpreter lock is released while a call waits.
Waiting
    A call returns when the operation is complete at this rank. With ``async_op=True`` it returns a
    `Work` at once. With ``stream=`` it returns at once, too: a `Work`, or else the array that will
    have the result when the stream has come there (of a library whose arrays nobody can write, such
    as JAX, only with ``out=`` or ``async_op=True``). Inside `anyccl.group` it is the same, and the
    result is there after the block. In any case a call whose input is copied waits for earlier
    operations, but for those of its stream, that may write between the input's first and last
    element. Arrays live until their operation is complete, whatever the program drops; each call on
    the communicator lets go of some that are, `Stream.synchronize` of all.
Time limits
    ``timeout=`` is in seconds, in place of `timeout` of the communicator; ``float("inf")``: none.
    If neither says anything it is what ``ANYCCL_OP_TIMEOUT`` says, or half an hour. An operation
    that takes longer fails as `Timeout`, and with it the communicator. To wait for some time only,
    without a failure: `Work.wait`.
Errors
    `InvalidArgument` and `Unsupported` refuse a call: nothing was started. A later error, unless a
    call says otherwise, makes the communicator fail for good on all ranks, with the same error from
    then on: `InvalidUsage` if the ranks' calls differ, `RemoteError` naming the rank that died,
    `Timeout`, `Aborted`. All are subclasses of `anyccl.Error`.)";
constexpr const char kFromEnv[] =
    R"(Join the communicator that the launcher's environment describes.

`anyccl run` and torchrun set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; several hosts also need
the same ANYCCL_SECRET. Returns when all ranks have joined.

Parameters
----------
name : str, optional
    Of the communicator, in logs.
wait : bool
    Whether to return when all ranks have joined. If not it returns at once: see `ready`.
timeout : float, optional
    Seconds that this may take, 0.001 to 86400; without it, what ANYCCL_TIMEOUT says, or a minute.
reproducible : int, optional
    Level of reproducibility of sums, 0 to 3; without it, what ANYCCL_REPRODUCIBLE says.
verify : int, optional
    1: results of collectives are verified; N: of each N-th; 0: of none. Without it, what
    ANYCCL_VERIFY says. A wrong result raises an `Error` that names the operation, ranks and often
    elements.
verify_later : bool, optional
    Whether calls do not wait for that: then a later call raises it.

Raises
------
Timeout
    Naming the ranks that did not join in time.)";
constexpr const char kFromUniqueId[] = R"(Join the communicator of `id` as `rank` of `size`.

Any thread; several may join at the same time.

Parameters
----------
id : UniqueId
rank, size : int
name : str, optional
    Of the communicator, in logs.
wait : bool
    Whether to return when all ranks have joined. If not it returns at once: see `ready`.
timeout : float, optional
    As for `from_env`.
reproducible, verify, verify_later : optional
    As for `from_env`.

Raises
------
Timeout
    Naming the ranks that did not join in time.)";
constexpr const char kInitAll[] = R"(Create all `size` ranks of one communicator in this process.

Returns
-------
list of Communicator
    Rank r at index r. Use each from a thread of its own, or group their calls.)";
constexpr const char kSplit[] =
    R"(Form new communicators of the ranks with the same color. Collective; not in a group.

Parameters
----------
color : int or None
    0 or more; a rank with None takes part in the call, and joins none.
key : int
    Ranks are ordered by (key, old rank).
name : str, optional
    Of the new communicator, in logs; without it, this one's.
wait : bool
    Equal on all ranks. If false it returns at once: see `ready`. This communicator refuses calls
    until then, and a rank with color None gets a communicator that can only be destroyed.
timeout : float, optional
    As for `from_env`; without it, until all ranks have made the call, what ``ANYCCL_OP_TIMEOUT``
    says, or half an hour. Where a rank does not make the call in time this communicator has failed.
reproducible, verify, verify_later : optional
    As for `from_env`; without them, those of this communicator.

Returns
-------
Communicator or None

Raises
------
Timeout
    Naming the ranks that did not come in time.)";
constexpr const char kShrink[] =
    R"(Form a communicator of the ranks that are not `excluded`, in their order. Not in a group.

These ranks make the call, and the others do not. This communicator stays as it is, but for
``after_failure=True``.

Parameters
----------
excluded : sequence of int
after_failure : bool
    Ranks that are left after a failure carry on: what runs on this communicator ends as `Aborted`,
    and it runs nothing afterwards. The ranks that make the call agree which ranks are left: all but
    those that have died or left, and those that any of them excludes, such as one that is stopped.
    Ranks may die meanwhile. May be called again of the result.
name : str, optional
    Of the new communicator, in logs; without it, this one's.
wait : bool
    As for `split`.
timeout : float, optional
    As for `from_env`.
reproducible, verify, verify_later : optional
    As for `from_env`; without them, those of this communicator.

Raises
------
Timeout
    Naming ranks that do not come in time. With ``after_failure=True`` the call may be repeated,
    also with these ranks excluded.
RemoteError
    Other ranks do without this one, or a rank cannot take part: named, with its reason.)";
constexpr const char kGrow[] =
    R"(Form a communicator of these ranks, which keep their numbers, and of new ones behind them.
Not in a group.

New ranks call `from_unique_id` with the same id and size, and their number. Collective; returns
when all have joined. This communicator stays as it is.

Parameters
----------
size : int
    Ranks in all.
id : UniqueId, optional
    On one rank, which has made it and brought it to the new ranks; None on the others.
name : str, optional
    Of the new communicator, in logs; without it, this one's.
reproducible, verify, verify_later : optional
    As for `from_env`; without them, those of this communicator.
wait, timeout : bool, float
    As for `split`.

Raises
------
Timeout
    Naming the ranks that did not join in time.
InvalidArgument, InvalidUsage
    A size or an id that one rank has wrong, on all ranks.)";
constexpr const char kReady[] =
    R"(Whether a communicator that was created with ``wait=False`` can be used.

After `finalize`: whether that is done. Before a communicator is created, operations raise
`InvalidUsage`, and so do `rank` and `size`, but not after `from_unique_id`; `abort` and `destroy`
are allowed. Any thread; never waits. Raises why the communicator could not be created, as
`Timeout`.)";
constexpr const char kWaitUntilReady[] = R"(Return when `ready` is true; raises what it raises.

With `timeout`, in seconds: `InProgress` if it is not by then; it goes on.)";
constexpr const char kFinalize[] =
    R"(Complete the issued operations and say goodbye to the other ranks.

Then the communicator can only be destroyed. If it was created with ``wait=False`` this returns at
once, and `ready` is true when it is done. Not in a group, nor while another thread is in a call.

Parameters
----------
timeout : float or None
    Seconds that this may take. Then receives that nobody has answered fail here, anything else that
    is open fails on all ranks, and `Timeout` is raised. None: without a limit of its own.)";
constexpr const char kDestroy[] =
    R"(Complete the issued operations, also those in streams, and leave the other ranks.

A second call does nothing. Dropping the last reference does the same as this call, or the same as
`abort` if the communicator was created with ``wait=False`` and never seen to be `ready`.
Communicators still alive at the end of the interpreter end with the process, without waiting.

Raises
------
InvalidUsage
    While another thread is inside a call.)";
constexpr const char kAbort[] =
    R"(Make all ranks' operations fail, and free the communicator. Any thread; never waits for a
peer.)";
constexpr const char kRevoke[] =
    R"(Make all ranks' operations fail as `Aborted`, naming this rank, unless they have failed
before.

Any thread; never waits for a peer. Unlike after `abort`, this rank may still ask the communicator
for `completed`, and `shrink` it with ``after_failure=True``, as the others may.)";
constexpr const char kRank[] = R"(This rank, from 0 to size - 1.)";
constexpr const char kSize[] = R"(The number of ranks.)";
constexpr const char kFailure[] =
    R"(The error that has made the communicator fail, or None. Any thread.)";
constexpr const char kTimeout[] =
    R"(Seconds that an operation which is called from now on may take, or None, the default: what
``ANYCCL_OP_TIMEOUT`` says, or half an hour. ``float("inf")``: for ever.

Only for collectives, sends, receives and objects; all other calls, such as `wait_signal`,
`Window.put`, `route`, exchanges with neighbours and `all_to_all_w`, have the default. An operation
that takes longer raises `Timeout` naming the missing ranks, and the communicator has failed. Of
collectives it counts from when those before are complete.)";
constexpr const char kDump[] =
    R"(Write what this rank remembers of its last operations, and for whom it waits now, to a JSON
file.

``anyccl blame`` compares those of all ranks and says which one holds up the others. Also after a
failure, and while other threads wait in calls. With ``ANYCCL_TRACE`` the rank's trace is written,
too.

Raises
------
SystemFailure
    The file cannot be written.)";
constexpr const char kMetrics[] =
    R"(What this rank has done in this communicator so far.

``"operations"`` has calls, bytes, seconds and failures of each operation, algorithm and protocol;
the seconds go from an operation's turn to its end. Nothing is counted with ``ANYCCL_RECORD=0``. Any
thread. `metrics_text` has those of all communicators for Prometheus.)";
constexpr const char kMetricsText[] =
    R"(What all communicators of this process have done so far, in the text format of Prometheus.

Those that have ended count, too. With ``ANYCCL_METRICS`` a file is written with it each 5
seconds.)";
constexpr const char kLoadAlgorithms[] =
    R"(Adds algorithms that files describe to those that ``ANYCCL_ALGO`` can name.

``path``: a file, a folder whose ``*.json`` are read, or several as ``ANYCCL_ALGO_PATH`` has them,
as ``"mine.json:/opt/algorithms"``. `anyccl.dsl` writes such files. All ranks must have loaded the
same before they create a communicator, which compares them. An algorithm is checked when it is
first used, for the ranks and hosts of that communicator. Raises `InvalidArgument`, naming the file
and the place in it.)";
constexpr const char kLastPlan[] =
    R"(How the last collective ran, for people: "all_reduce/two_shot Simple shm".)";
constexpr const char kCompleted[] =
    R"(How many collectives have completed: at this rank, and at all ranks that are left.

The second is 0 until `shrink` with ``after_failure=True`` has returned. A program that notes the
first at the end of each step finds the last step that all ranks have done. A group that travels as
one counts as one, and `split` calls some, too.)";
constexpr const char kSurvivors[] =
    R"(Ranks of this communicator that are left: rank i of the one that `shrink` has made is
`survivors[i]` here.

The same on all that are left. Raises `InvalidUsage` before `shrink` with ``after_failure=True``.)";

}  // namespace anyccl::python::docs
