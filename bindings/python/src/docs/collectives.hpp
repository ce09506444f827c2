#pragma once
// Docstrings, in NumPy's style: collectives with equal blocks.

namespace anyccl::python::docs {

constexpr const char kAllReduce[] =
    R"(Combine the arrays of all ranks; every rank gets the result, bitwise the same.

Parameters
----------
x : array of any shape
    Of the same shape on all ranks.
op : ReduceOp, str or Operator
out : array, optional
    ``out=x`` is in place. Of a wider type, elements are added up in that: float32 for float16 and
    bfloat16, int64 for int32. Of a narrower floating-point type, the sum is rounded to it.
accumulate : dtype or str, optional
    Elements are added up in this type, which is wider than theirs, and the result is rounded once.
leaves : int, optional
    The sum is of so many parts: `x` has ``leaves / size`` of them, a power of two, along its first
    dimension, and the result the shape of one; ``out=x[0]`` is in place. Its bits are the same for
    every number of ranks.
async_op, stream, timeout
    As of every operation; see `Communicator`.

Returns
-------
array
    Of the shape of `x`, or of a part of it.)";
constexpr const char kBroadcast[] = R"(Give every rank the array of the root.

Parameters
----------
x : array of any shape
    The array to send. On other ranks only its type and shape matter, and it may be None if there is
    `out`.
root : int
out : array, optional
    ``out=x`` is in place.
async_op, stream, timeout
    As of every operation; see `Communicator`.

Returns
-------
array
    Of the shape of `x`.)";
constexpr const char kReduce[] = R"(Combine the arrays of all ranks at the root.

Parameters
----------
x : array of any shape
    Of the same shape on all ranks.
op : ReduceOp, str or Operator
root : int
out : array, optional
    Used only at the root, where ``out=x`` is in place.
async_op, stream, timeout
    As of every operation; see `Communicator`.

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
op : ReduceOp, str or Operator
    Not avg.
out : array, optional
    ``out=x`` is in place.
async_op, stream, timeout
    As of every operation; see `Communicator`.

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
op : ReduceOp, str or Operator
    Not avg.
out : array, optional
    Not used on rank 0; elsewhere ``out=x`` is in place.
async_op, stream, timeout
    As of every operation; see `Communicator`.

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
op : ReduceOp, str or Operator
out : array, optional
    ``out=x[rank]`` is in place. Of another type: as in `all_reduce`.
accumulate : dtype or str, optional
    As in `all_reduce`.
leaves : int, optional
    As in `all_reduce`: then `x` has the shape ``(leaves / size, size, ...)``, and
    ``out=x[0][rank]`` is in place.
async_op, stream, timeout
    As of every operation; see `Communicator`.

Returns
-------
array
    Of the shape of a block, ``x.shape[1:]``; with `leaves`, ``x.shape[2:]``.)";
constexpr const char kAllGather[] = R"(Give every rank the arrays of all.

Parameters
----------
x : array of any shape
    Of the same shape on all ranks.
out : array, optional
    ``x=out[rank]`` is in place.
async_op, stream, timeout
    As of every operation; see `Communicator`.

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
async_op, stream, timeout
    As of every operation; see `Communicator`.

Returns
-------
array or None
    Of shape ``(size, *x.shape)`` at the root; None elsewhere.)";
constexpr const char kScatter[] = R"(Give each rank its block of the array of the root.

Parameters
----------
x : array of shape (size, ...)
    One block for each rank. On ranks other than the root only its type and shape matter, and it may
    be None if there is `out`.
root : int
out : array, optional
    ``out=x[root]`` is in place at the root.
async_op, stream, timeout
    As of every operation; see `Communicator`.

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
async_op, stream, timeout
    As of every operation; see `Communicator`.

Returns
-------
array
    Of the shape of `x`; [r] is the block that came from rank r.)";

}  // namespace anyccl::python::docs
