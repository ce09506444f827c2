"""Arrays in memory that peers can read."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import anyccl
from anyccl import _core


@pytest.mark.parametrize("shape", [(), 3, (0,), (2, 3), [4, 0, 2], np.int64(5)])
@pytest.mark.parametrize("dtype", ["float32", np.int8, np.dtype("complex128"), bool])
def test_an_array_is_one_of_numpy(shape, dtype):
    x = anyccl.empty(shape, dtype)
    assert type(x) is np.ndarray and x.dtype == np.dtype(dtype) and x.shape == np.empty(shape).shape
    assert x.flags.c_contiguous and x.flags.writeable and x.ctypes.data % 64 == 0


def test_zeros_are_zero_and_empty_like_has_shape_and_type():
    assert anyccl.zeros((2, 2), "int16").tolist() == [[0, 0], [0, 0]]
    x = anyccl.empty_like(np.ones((2, 5), np.float32))
    assert x.shape == (2, 5) and x.dtype == np.float32
    assert anyccl.zeros(2).dtype == np.float64


def test_large_arrays_are_reduced_in_place(two):
    def run(c):
        x = anyccl.empty(1 << 18)
        x.fill(c.rank + 1)
        c.all_reduce(x, out=x)
        return x.min(), x.max()

    assert two.each(run) == [(3, 3)] * 2


def base_of(x):
    while not isinstance(x, _core._ArenaBlock):
        x = x.obj if isinstance(x, memoryview) else x.base
    return x


def test_the_memory_lives_as_long_as_its_last_view():
    x = anyccl.zeros(100)
    alive = weakref.ref(base_of(x))
    view = x[10:20].reshape(2, 5)
    del x
    gc.collect()
    assert alive() is not None and view.sum() == 0
    del view
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, np.copy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_is_an_ordinary_array(again):
    x = anyccl.zeros(4)
    y = again(x)
    assert y.base is None or not isinstance(y.base, memoryview)
    y += 1
    assert x.tolist() == [0] * 4 and y.tolist() == [1] * 4


def test_dlpack_gives_a_view():
    x = anyccl.zeros(4)
    y = np.from_dlpack(x)
    x[0] = 5
    assert y[0] == 5


@pytest.mark.parametrize("shape", [-1, (2, -3)])
def test_a_negative_dimension_is_refused(shape):
    with pytest.raises(anyccl.InvalidArgument, match="0 or more"):
        anyccl.empty(shape)


def test_a_type_that_anyccl_has_not_is_refused():
    with pytest.raises(anyccl.InvalidArgument, match="not an element type"):
        anyccl.empty(3, "datetime64[s]")


def test_more_than_there_is_is_an_error():
    for shape in (1 << 44, 1 << 60, (1 << 40, 1 << 40)):
        with pytest.raises(anyccl.InvalidArgument, match="64 TiB are the most"):
            anyccl.empty(shape)
