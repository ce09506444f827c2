#pragma once
// Docstrings, in NumPy's style: how elements are combined.

namespace anyccl::python::docs {

constexpr const char kReduceOp[] =
    R"(How elements are combined; every function takes the name as well.

``avg`` is the sum divided by the number of ranks (truncated for integers); ``land``, ``lor`` and
``lxor`` are logical, ``band``, ``bor`` and ``bxor`` bitwise. Complex numbers have sum, prod and
avg, other floating-point types also max and min, integers all, bool all but avg.)";
constexpr const char kOperator[] =
    R"(An operator of one communicator: of `Communicator.create_operator`, `max_loc` or `min_loc`.

It is freed with its last reference; operations that use it keep it.)";
constexpr const char kPreMulSum[] = R"(An operator of `Communicator.pre_mul_sum`.)";
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
constexpr const char kCreateOperator[] =
    R"(Make an operator of a function of your own, for arrays of any type.

NumPy has bfloat16 and the 8-bit floats only with the package ml_dtypes: without it, calls of these
types with such an operator are Unsupported, and a collective ends the communicator.

Parameters
----------
function : callable
    ``function(a, inout)`` with two one-dimensional NumPy arrays of the type of the call: writes
    ``a[i] op inout[i]`` to ``inout[i]``, for all i. It gets parts of the vectors, copied, of at
    most 4 KiB, but whole ones in `reduce_local`. Must be associative and commutative, also in its
    last bit where all ranks are to get the same. Called by whichever thread makes progress, which
    may be one of the library; it must not call anyccl.

Returns
-------
Operator
    An `op` for this communicator; all ranks use an operator with the same meaning in the same call.

Notes
-----
If it raises, the operation raises that exception on this rank, as does everything on the
communicator from then on; other ranks get `Aborted`, at the latest with their next operation.)";
constexpr const char kMaxLoc[] =
    R"(Make an operator for the largest value and where it is: MPI's MAXLOC.

Elements of a call are pairs of a value and an index, and the result has the largest value with the
least index that has it; a NaN wins.

Parameters
----------
value : str or dtype
    "float32" or "int32", with indices of int32: calls are of uint64. "float64" or "int64", with
    indices of int64: calls are of complex128.

Examples
--------
>>> pair = numpy.dtype([("value", "f8"), ("index", "i8")])
>>> mine = numpy.array([(loss, comm.rank)], pair)
>>> best = comm.all_reduce(mine.view("complex128"), comm.max_loc()).view(pair))";
constexpr const char kMinLoc[] =
    R"(Make an operator for the least value and where it is: MPI's MINLOC; otherwise as
`max_loc`.)";
constexpr const char kReduceLocal[] =
    R"(Combine two arrays of this process: inout = a op inout, with the bits that collectives have.

Parameters
----------
a, inout : array
    Of as many elements of the same type; they do not overlap.
op : ReduceOp, str or Operator
    Not avg, and not a `PreMulSum`.

Returns
-------
array
    `inout`.)";

}  // namespace anyccl::python::docs
