#pragma once
// Docstrings of anyccl._core, in NumPy's style. The rules of all operations are in one place,
// Communicator.

namespace anyccl::python::docs {

constexpr const char kUniqueId[] =
    R"(The name of one new communicator, by which its ranks find and trust each other.

Any process with it can join: pass it on safely, as ``bytes(id)`` or pickled. The process that created
it must live until all ranks have joined.)";
constexpr const char kUniqueIdCreate[] =
    R"(Make an id and start to listen for the ranks in this process.

Raises
------
SystemFailure, InvalidArgument
    If it cannot listen, or the environment is invalid.)";

constexpr const char kReduceOp[] =
    R"(How elements are combined; every function takes the name as well.

``avg`` is the sum divided by the number of ranks (truncated for integers); ``land``, ``lor`` and
``lxor`` are logical, ``band``, ``bor`` and ``bxor`` bitwise. Complex numbers have sum, prod and avg,
other floating-point types also max and min, integers all, bool all but avg.)";
constexpr const char kPreMulSum[] = R"(An operator of `Communicator.pre_mul_sum`.)";

constexpr const char kWork[] = R"(An operation that was issued with ``async_op=True``.

It keeps its arrays alive until it is complete; dropped before that, it leaves them to its
communicator. As a context manager it waits at the end of the block. Any thread may use it.)";
constexpr const char kWorkWait[] =
    R"(Return the result when the operation is complete; may be called again.

Raises
------
Error
    The failure of the operation; see `Communicator`.)";
constexpr const char kWorkTest[] =
    R"(Whether the operation is complete. Makes progress, never blocks.

Raises
------
Error
    If it has failed.)";
constexpr const char kWorkSource[] =
    R"(The rank that a complete `recv` came from; an error for other operations.)";
constexpr const char kWorkDone[] =
    R"(Whether the operation is complete or has failed. Makes progress, never blocks.)";

constexpr const char kCommunicator[] = R"(One rank of a group of ranks that communicate.

Made by `from_env`, `from_unique_id`, `init_all` or `split`. As a context manager it is destroyed at
the end of the block, and aborted if the block raises.

Arrays
    Any object in host memory with DLPack or the buffer protocol: NumPy, JAX and PyTorch arrays,
    ``array.array``, ``bytearray``. An input may be read-only, and is copied if it is not contiguous
    in C order; its elements must not change until the operation is complete. ``out`` must be writable,
    contiguous in C order, and of the result's type and shape (or have as many elements in one
    dimension); it is returned. Without ``out`` the result is a new array of the same library as the
    input, or of NumPy if that library cannot take arrays over.
Order
    All ranks call the same operations in the same order; sends and receives are matched for each pair
    and direction separately. Types, shapes and operators are equal on all ranks, unless an operation
    says otherwise.
Threads
    One thread at a time calls a communicator; a second one gets `InvalidUsage`. `abort`, `failure` and
    `Work` may be used from any thread. The interpreter lock is released while a call waits.
Waiting
    A call returns when the operation is complete at this rank. With ``async_op=True`` it returns a
    `Work` at once. Each wait and call on the communicator makes progress on its operations, also on
    those whose `Work` was dropped: their arrays live until they are complete, or the communicator is
    destroyed.
Errors
    `InvalidArgument` and `Unsupported` refuse a call: nothing was started. A later error makes the
    communicator fail for good on all ranks, with the same error from then on:
    `InvalidUsage` if the ranks' calls differ, `RemoteError` naming the rank that died, `Timeout`,
    `Aborted`. All are subclasses of `anyccl.Error`.)";
constexpr const char kFromEnv[] =
    R"(Join the communicator that the launcher's environment describes.

`anyccl run` and torchrun set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; several hosts also need
the same ANYCCL_SECRET. Returns when all ranks have joined.

Raises
------
Timeout
    Naming the ranks that did not join within ANYCCL_TIMEOUT seconds.)";
constexpr const char kFromUniqueId[] =
    R"(Join the communicator of `id` as `rank` of `size`; returns when all have joined.

Raises
------
Timeout
    Naming the ranks that did not join within ANYCCL_TIMEOUT seconds.)";
constexpr const char kInitAll[] = R"(Create all `size` ranks of one communicator in this process.

Returns
-------
list of Communicator
    Rank r at index r. Use each from a thread of its own.)";
constexpr const char kSplit[] =
    R"(Form new communicators of the ranks with the same color. Collective.

Parameters
----------
color : int or None
    0 or more; a rank with None takes part in the call, and joins none.
key : int
    Ranks are ordered by (key, old rank).

Returns
-------
Communicator or None)";
constexpr const char kRank[] = R"(This rank, from 0 to size - 1.)";
constexpr const char kSize[] = R"(The number of ranks.)";
constexpr const char kFailure[] =
    R"(The error that has made the communicator fail, or None. Any thread.)";
constexpr const char kTimeout[] =
    R"(Seconds that an operation which is called from now on may take, or None: for ever, the default.

An operation that takes longer raises `Timeout` naming who is missing, and the communicator has failed. Of
collectives it counts from when those before are complete.)";
constexpr const char kLastPlan[] =
    R"(How the last collective ran, for people: "all_reduce/two_shot Simple shm".)";
constexpr const char kDestroy[] = R"(Complete the issued operations and leave the other ranks.

A second call does nothing. Dropping the last reference does the same as this call; communicators still
alive at the end of the interpreter end with the process, without waiting.)";
constexpr const char kAbort[] =
    R"(Make all ranks' operations fail, and free the communicator. Any thread; never waits for a peer.)";
constexpr const char kPreMulSumCreate[] =
    R"(Make an operator that sums each rank's input times its `factor`.

Parameters
----------
factor : number
    May differ between ranks.
dtype : str or dtype
    The type of the arrays, as "float32", ``numpy.float32`` or ``x.dtype``. Not bool. The
    product is rounded to it before the sum.

Returns
-------
PreMulSum
    An `op` for this communicator; all ranks must use such an operator in the same call.)";

constexpr const char kAllReduce[] =
    R"(Combine the arrays of all ranks; every rank gets the result, bitwise the same.

Parameters
----------
x : array of any shape
    Of the same shape on all ranks.
op : ReduceOp, str or PreMulSum
out : array, optional
    ``out=x`` is in place.
async_op : bool
    Return a `Work` at once.

Returns
-------
array
    Of the shape of `x`.)";
constexpr const char kBroadcast[] = R"(Give every rank the array of the root.

Parameters
----------
x : array of any shape
    The array to send. On other ranks only its type and shape matter, and it may be None if there is
    `out`.
root : int
out : array, optional
    ``out=x`` is in place.
async_op : bool
    Return a `Work` at once.

Returns
-------
array
    Of the shape of `x`.)";
constexpr const char kReduce[] = R"(Combine the arrays of all ranks at the root.

Parameters
----------
x : array of any shape
    Of the same shape on all ranks.
op : ReduceOp, str or PreMulSum
root : int
out : array, optional
    Used only at the root, where ``out=x`` is in place.
async_op : bool
    Return a `Work` at once.

Returns
-------
array or None
    Of the shape of `x` at the root; None elsewhere.)";
constexpr const char kScan[] =
    R"(Combine the arrays of the ranks up to and with this one: MPI's inclusive prefix.

Parameters
----------
x : array of any shape
    Of the same shape on all ranks.
op : ReduceOp, str or PreMulSum
    Not avg.
out : array, optional
    ``out=x`` is in place.
async_op : bool
    Return a `Work` at once.

Returns
-------
array
    Of the shape of `x`.)";
constexpr const char kExscan[] =
    R"(Combine the arrays of the ranks before this one: MPI's exclusive prefix.

Parameters
----------
x : array of any shape
    Of the same shape on all ranks.
op : ReduceOp, str or PreMulSum
    Not avg.
out : array, optional
    Not used on rank 0; elsewhere ``out=x`` is in place.
async_op : bool
    Return a `Work` at once.

Returns
-------
array or None
    Of the shape of `x`; None on rank 0.)";
constexpr const char kReduceScatter[] =
    R"(Combine the arrays of all ranks; rank r gets block r of the result.

Parameters
----------
x : array of shape (size, ...)
    One block for each rank.
op : ReduceOp, str or PreMulSum
out : array, optional
    ``out=x[rank]`` is in place.
async_op : bool
    Return a `Work` at once.

Returns
-------
array
    Of the shape of a block, ``x.shape[1:]``.)";
constexpr const char kAllGather[] = R"(Give every rank the arrays of all.

Parameters
----------
x : array of any shape
    Of the same shape on all ranks.
out : array, optional
    ``x=out[rank]`` is in place.
async_op : bool
    Return a `Work` at once.

Returns
-------
array
    Of shape ``(size, *x.shape)``; [r] is the array of rank r.)";
constexpr const char kGather[] = R"(Give the root the arrays of all ranks.

Parameters
----------
x : array of any shape
    Of the same shape on all ranks.
root : int
out : array, optional
    Used only at the root, where ``x=out[root]`` is in place.
async_op : bool
    Return a `Work` at once.

Returns
-------
array or None
    Of shape ``(size, *x.shape)`` at the root; None elsewhere.)";
constexpr const char kScatter[] = R"(Give each rank its block of the array of the root.

Parameters
----------
x : array of shape (size, ...)
    One block for each rank. On ranks other than the root only its type and shape matter, and it may be
    None if there is `out`.
root : int
out : array, optional
    ``out=x[root]`` is in place at the root.
async_op : bool
    Return a `Work` at once.

Returns
-------
array
    Of the shape of a block, ``x.shape[1:]``.)";
constexpr const char kAllToAll[] = R"(Exchange blocks: block j goes to rank j.

Parameters
----------
x : array of shape (size, ...)
    One block for each rank.
out : array, optional
    ``out=x`` is in place.
async_op : bool
    Return a `Work` at once.

Returns
-------
array
    Of the shape of `x`; [r] is the block that came from rank r.)";
constexpr const char kBarrier[] =
    R"(Return when all ranks have called it; with ``async_op=True``, a `Work` that is complete then.)";
constexpr const char kSend[] =
    R"(Send an array to rank `dst`, which receives as many elements of the same type with the same tag.

May return before the receiver has called `recv`, but need not: to exchange, use ``async_op=True`` on
both sides and wait for both. The `Work` gives None.)";
constexpr const char kRecv[] = R"(Receive from rank `src` into the array `out`, and return it.

Without `src`: the next fitting message of any rank. With ``async_op=True``, `Work.source` tells which.)";

constexpr const char kAllToAllV[] =
    R"(Exchange blocks of different sizes, of rows along the first dimension.

Parameters
----------
x : array of shape (rows, ...)
send_counts, recv_counts : sequence of int
    Rows for, and from, each rank: send_counts[j] here is recv_counts[i] at rank j.
send_displs, recv_displs : sequence of int, optional
    The first row of each block in `x` and in the result. Without it they follow each other.
out : array, optional
    Not `x`. With `recv_displs` it may have more rows than are written.
async_op : bool
    Return a `Work` at once.

Returns
-------
array
    Of shape ``(sum(recv_counts), *x.shape[1:])``, or as far as `recv_displs` reach; unwritten rows of
    a new array are 0.)";
constexpr const char kAllGatherV[] =
    R"(Give every rank the arrays of all, of different numbers of rows.

Parameters
----------
x : array of shape (counts[rank], ...)
counts : sequence of int
    Rows from each rank; equal on all ranks.
displs : sequence of int, optional
    The first row of each rank's block in the result. Without it they follow each other.
out : array, optional
    With `displs` it may have more rows than are written.
async_op : bool
    Return a `Work` at once.

Returns
-------
array
    Of shape ``(sum(counts), *x.shape[1:])``, or as far as `displs` reach; unwritten rows of a new array
    are 0.)";
constexpr const char kReduceScatterV[] =
    R"(Combine the arrays of all ranks; rank r gets its counts[r] rows of the result.

Parameters
----------
x : array of shape (sum(counts), ...)
counts : sequence of int
    Rows for each rank; equal on all ranks.
op : ReduceOp, str or PreMulSum
displs : sequence of int, optional
    The first row of each rank's block in `x`. Without it they follow each other.
out : array, optional
    May be its rows of `x`, which is in place.
async_op : bool
    Return a `Work` at once.

Returns
-------
array
    Of shape ``(counts[rank], *x.shape[1:])``.)";
constexpr const char kGatherV[] =
    R"(Give the root the arrays of all ranks, of different numbers of rows.

Parameters
----------
x : array of shape (rows, ...)
counts : sequence of int
    Rows from each rank. Used only at the root, as are `displs` and `out`.
root : int
displs : sequence of int, optional
    The first row of each rank's block in the result. Without it they follow each other.
out : array, optional
    With `displs` it may have more rows than are written.
async_op : bool
    Return a `Work` at once.

Returns
-------
array or None
    Of shape ``(sum(counts), *x.shape[1:])`` at the root, or as far as `displs` reach, with 0 in
    unwritten rows of a new array; None elsewhere.)";
constexpr const char kScatterV[] = R"(Give each rank its counts[r] rows of the array of the root.

Parameters
----------
x : array of shape (sum(counts), ...)
    Used only at the root, as are `counts` and `displs`; elsewhere None.
counts : sequence of int
    Rows for each rank.
root : int
displs : sequence of int, optional
    The first row of each rank's block in `x`. Without it they follow each other.
out : array
    The array for the rows. Only the root can omit it: the others do not know the number of rows.
async_op : bool
    Return a `Work` at once.

Returns
-------
array
    Of shape ``(counts[rank], *x.shape[1:])``.)";

}  // namespace anyccl::python::docs
