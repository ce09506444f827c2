"""Operators of your own, and combining arrays of one process."""

import gc
import weakref

import numpy as np
import pytest

import anyccl


def add(a, inout):
    inout += a


@pytest.mark.parametrize("dtype", ["int32", "float64", "complex64", "bool", "uint8"])
def test_a_function_gets_arrays_of_the_type_of_the_call(four, dtype):
    seen = []

    def maximum(a, inout):
        seen.append((a.dtype.name, inout.dtype.name, a.ndim))
        inout[:] = np.maximum(a, inout)

    def run(c):
        return c.all_reduce(np.array([c.rank % 2, 1, 0]).astype(dtype), c.create_operator(maximum)).tolist()

    assert four.each(run) == [[1, 1, 0]] * 4
    assert set(seen) == {(dtype, dtype, 1)}


@pytest.mark.parametrize("how", ["blocking", "async", "stream", "group"])
def test_a_function_works_in_every_kind_of_call(two, how):
    def run(c):
        op, x, stream = c.create_operator(add), np.full(50000, c.rank + 1.0), anyccl.Stream()
        if how == "async":
            return c.all_reduce(x, op, async_op=True).wait().sum()
        if how == "stream":
            y = c.all_reduce(x, op, stream=stream)
            del op
            stream.synchronize()
            return y.sum()
        if how == "group":
            with anyccl.group():
                y = c.all_reduce(x, op)
            return y.sum()
        return c.all_reduce(x, op).sum()

    assert two.each(run) == [150000] * 2


def test_arrays_that_a_function_keeps_stay_what_they_are(two):
    kept = []

    def keep(a, inout):
        kept.append((a, inout))
        inout += a

    two.each(lambda c: c.all_reduce(np.full(3, c.rank + 1.0), c.create_operator(keep)))
    assert {tuple(sorted((a[0], b[0]))) for a, b in kept} <= {(1, 3), (2, 3)}


def test_an_exception_of_a_function_is_that_of_the_call_and_peers_hear_of_it(two):
    def fail(a, inout):
        raise KeyError("no")

    def run(c):
        op = c.create_operator(fail if c.rank == 0 else add)
        if c.rank == 1:
            with pytest.raises(anyccl.Error):
                while True:  # it may have its first result already
                    c.all_reduce(np.ones(10), op)
            return
        with pytest.raises(KeyError, match="no"):
            c.all_reduce(np.ones(10), op)
        with pytest.raises(KeyError, match="no"):
            c.barrier()
        assert isinstance(c.failure, KeyError)

    two.each(run)


@pytest.mark.parametrize("how", ["async", "stream", "group"])
def test_an_exception_of_a_function_comes_with_the_wait(two, how):
    def run(c):
        def fail(a, inout):
            raise ValueError("bad")

        op, stream = c.create_operator(fail), anyccl.Stream()
        with pytest.raises((ValueError, anyccl.Aborted)):
            if how == "async":
                c.all_reduce(np.ones(4), op, async_op=True).wait()
            elif how == "stream":
                c.all_reduce(np.ones(4), op, stream=stream)
                stream.synchronize()
            else:
                with anyccl.group():
                    c.all_reduce(np.ones(4), op)

    two.each(run)


def test_an_operator_is_freed_with_its_last_user(two):
    class Function:
        def __call__(self, a, inout):
            inout += a

    def run(c):
        function = Function()
        alive = weakref.ref(function)
        op = c.create_operator(function)
        c.all_reduce(np.ones(1), op)
        del function, op
        gc.collect()
        return alive() is None

    assert two.each(run) == [True, True]


def test_an_operator_belongs_to_one_communicator(two):
    op = two.comms[1].create_operator(add)
    with pytest.raises(anyccl.InvalidArgument, match="another communicator"):
        two.comms[0].all_reduce(np.ones(1), op)


def test_operators_are_freed_when_there_were_many(alone):
    for _ in range(300):
        alone.all_reduce(np.ones(1), alone.create_operator(add))


@pytest.mark.parametrize(
    "value, index, call",
    [("f8", "i8", "complex128"), ("i8", "i8", "complex128"), ("f4", "i4", "uint64"), ("i4", "i4", "uint64")],
)
def test_the_largest_and_least_value_and_where_they_are(four, value, index, call):
    pair = np.dtype([("value", value), ("index", index)])

    def run(c):
        mine = np.array([(-c.rank % 4, c.rank)], pair)
        found = [
            c.all_reduce(mine.view(call), make(np.dtype(value))).view(pair)[0].tolist() for make in (c.max_loc, c.min_loc)
        ]
        return found

    assert four.each(run) == [[(3, 1), (0, 0)]] * 4


def test_values_of_other_types_are_refused(alone):
    with pytest.raises(anyccl.Unsupported, match="float64"):
        alone.max_loc("int8")


def test_operators_say_what_they_are(alone):
    assert repr(alone.max_loc()) == "<anyccl.Operator, max_loc of float64>"
    assert repr(alone.min_loc("int32")) == "<anyccl.Operator, min_loc of int32>"
    assert repr(alone.pre_mul_sum(2, "int8")) == "<anyccl.PreMulSum of int8>"
    assert "function add" in repr(alone.create_operator(add))


def test_what_is_no_function_is_refused(alone):
    with pytest.raises(TypeError):
        alone.create_operator(3)


def test_reduce_local_combines_two_arrays():
    x = np.array([1.0, 5.0])
    assert anyccl.reduce_local(np.array([3.0, 4.0]), x, "max") is x
    assert x.tolist() == [3, 5]
    assert anyccl.reduce_local(np.array([1.0, 1.0]), x).tolist() == [4, 6]


def test_reduce_local_takes_own_operators_and_raises_what_they_raise(alone):
    x = np.ones(1000)
    anyccl.reduce_local(np.ones(1000), x, alone.create_operator(add))
    assert x.tolist() == [2] * 1000
    with pytest.raises(ZeroDivisionError):
        anyccl.reduce_local(np.ones(1), np.ones(1), alone.create_operator(lambda a, b: 1 / 0))
    assert alone.failure is None


def test_reduce_local_checks_its_arguments(alone):
    with pytest.raises(anyccl.InvalidArgument, match="a has 2 elements of float64, but inout 3"):
        anyccl.reduce_local(np.ones(2), np.ones(3))
    with pytest.raises(anyccl.InvalidArgument, match="overlap"):
        x = np.ones(2)
        anyccl.reduce_local(x, x)
    with pytest.raises(anyccl.Unsupported, match="pre-multiplied"):
        anyccl.reduce_local(np.ones(1), np.ones(1), alone.pre_mul_sum(2, "float64"))
