#pragma once
// Docstrings, in NumPy's style: collectives with blocks of different sizes.

namespace anyccl::python::docs {

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
async_op, stream, timeout
    As of every operation; see `Communicator`.

Returns
-------
array
    Of shape ``(sum(recv_counts), *x.shape[1:])``, or as far as `recv_displs` reach; unwritten rows
    of a new array are 0.)";
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
async_op, stream, timeout
    As of every operation; see `Communicator`.

Returns
-------
array
    Of shape ``(sum(counts), *x.shape[1:])``, or as far as `displs` reach; unwritten rows of a new
    array are 0.)";
constexpr const char kReduceScatterV[] =
    R"(Combine the arrays of all ranks; rank r gets its counts[r] rows of the result.

Parameters
----------
x : array of shape (sum(counts), ...)
counts : sequence of int
    Rows for each rank; equal on all ranks.
op : ReduceOp, str or Operator
displs : sequence of int, optional
    The first row of each rank's block in `x`. Without it they follow each other.
out : array, optional
    May be its rows of `x`, which is in place.
async_op, stream, timeout
    As of every operation; see `Communicator`.

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
async_op, stream, timeout
    As of every operation; see `Communicator`.

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
async_op, stream, timeout
    As of every operation; see `Communicator`.

Returns
-------
array
    Of shape ``(counts[rank], *x.shape[1:])``.)";

}  // namespace anyccl::python::docs
