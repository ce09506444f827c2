"""Which arrays are taken, from which libraries, and what comes back."""

import array
import ctypes

import ml_dtypes
import numpy as np
import pytest
from tensor import BFLOAT, BOOL, COMPLEX, FLOAT8_E4M3FN, FLOAT8_E5M2, READ_ONLY, Imported, LibraryTensor, Tensor

import anyccl

FLOAT, UINT = 2, 1


def test_numpy_in_gives_numpy_out(alone):
    assert type(alone.all_reduce(np.ones(3))) is np.ndarray


def test_array_array_and_bytearray_are_inputs(alone):
    assert alone.all_reduce(array.array("d", [1, 2])).tolist() == [1, 2]
    assert alone.all_reduce(bytearray(b"ab")).tolist() == [97, 98]


def test_arrays_of_ctypes_which_export_no_strides_are_in_c_order(alone):
    x = (ctypes.c_double * 3)(1, 2, 3)
    assert alone.all_reduce(x).tolist() == [1, 2, 3]
    alone.all_reduce(np.full(3, 5.0), out=x)
    assert list(x) == [5, 5, 5]
    assert alone.all_gather(((ctypes.c_short * 2) * 2)((1, 2), (3, 4))).tolist() == [[[1, 2], [3, 4]]]
    assert alone.all_gather((ctypes.c_int * 0)()).shape == (1, 0)


class Structure(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int)]


@pytest.mark.parametrize("x", [
    (Structure * 2)(),
    (ctypes.c_double.__ctype_be__ * 2)(1, 2),
    np.ones(2, ">f4"),
    np.zeros(2, [("x", "i4")]),
], ids=["structures", "big-endian", "big-endian of NumPy", "records"])
def test_buffers_of_other_elements_are_refused(alone, x):
    with pytest.raises(anyccl.Unsupported, match="no element type for"):
        alone.all_reduce(x)


def test_a_masked_array_is_refused_as_its_mask_would_be_lost(alone):
    x = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(anyccl.Unsupported, match=r"x is a masked array: .* x\.filled\(0\)"):
        alone.all_reduce(x)
    assert alone.all_reduce(x.filled(0)).tolist() == [1, 0]


def test_a_tensor_that_is_negative_only_in_name_is_refused(alone):
    """As those of torch are, whose export shows the memory as it is."""
    class Negative(Tensor):
        def is_neg(self):
            return True

    with pytest.raises(anyccl.Unsupported, match=r"pass x\.resolve_neg\(\)"):
        alone.all_reduce(Negative(np.ones(2, "u4"), FLOAT))


def test_bytes_are_an_input_but_no_output(alone):
    assert alone.all_reduce(b"ab").tolist() == [97, 98]
    with pytest.raises(anyccl.InvalidArgument, match="out is read-only"):
        alone.all_reduce(b"ab", out=b"cd")


def test_array_array_is_an_output(alone):
    out = array.array("f", [0, 0])
    assert alone.all_reduce(np.array([1, 2], np.float32), out=out) is out
    assert out.tolist() == [1, 2]


def test_a_flat_buffer_is_an_output_for_a_result_of_any_shape(alone):
    out = bytearray(6)
    alone.all_gather(np.arange(6, dtype=np.uint8).reshape(2, 3), out=out)
    assert out == bytes(range(6))


def test_a_read_only_numpy_array_is_an_input_but_no_output(alone):
    x = np.ones(3)
    x.flags.writeable = False
    assert alone.all_reduce(x).tolist() == [1, 1, 1]
    with pytest.raises(anyccl.InvalidArgument, match="out is read-only"):
        alone.all_reduce(x, out=x)


def test_a_read_only_dlpack_array_is_an_input_but_no_output(alone):
    x = Tensor(np.ones(3, np.uint32), UINT, flags=READ_ONLY)
    assert alone.all_reduce(x).tolist() == [1, 1, 1]
    with pytest.raises(anyccl.InvalidArgument, match="out is read-only"):
        alone.all_reduce(x, out=x)


@pytest.mark.parametrize("flags", [None, 0])
def test_a_dlpack_array_is_input_and_output_with_and_without_versions(alone, flags):
    bits = np.zeros(3, np.uint32)
    out = Tensor(bits, UINT, flags=flags)
    assert alone.all_reduce(Tensor(np.arange(3, dtype=np.uint32), UINT, flags=flags), out=out) is out
    assert bits.tolist() == [0, 1, 2]


def test_a_dlpack_array_of_an_unknown_library_gives_numpy(alone):
    assert type(alone.all_reduce(Tensor(np.ones(3, np.uint32), UINT))) is np.ndarray


@pytest.mark.parametrize(
    "code, unsigned",
    [(BFLOAT, "u2"), (FLOAT8_E4M3FN, "u1"), (FLOAT8_E5M2, "u1"), (BOOL, "u1"), (COMPLEX, "u8"), (COMPLEX, "c16")],
)
def test_a_result_is_of_the_library_and_type_of_the_input(alone, code, unsigned):
    x = LibraryTensor(np.ones((2, 3), unsigned), code)
    y = alone.all_reduce(x)
    assert type(y) is Imported
    assert (y.code, y.bits, y.shape) == (code, x.bits.itemsize * 8, (2, 3))
    assert y.bytes == x.bits.tobytes()


def test_the_result_of_a_work_is_of_the_library_of_the_input(alone):
    y = alone.all_gather(LibraryTensor(np.ones(2, np.uint16), BFLOAT), async_op=True).wait()
    assert type(y) is Imported and y.shape == (1, 2)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_of_ml_dtypes_are_numpy_arrays(alone, name):
    x = np.array([1, 2], getattr(ml_dtypes, name))
    y = alone.all_reduce(x)
    assert y.dtype == x.dtype and y.tolist() == [1, 2]
    alone.all_reduce(x, "max", out=x)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(24.0).reshape(4, 6)[::2, 1::2],
        np.arange(6.0)[::-1],
        np.arange(6.0).reshape(2, 3).T,
        np.broadcast_to(np.float64(3), (2, 2)),
        np.ones((2, 3), ml_dtypes.bfloat16).T,
    ],
)
def test_an_input_that_is_not_contiguous_is_copied(alone, x):
    np.testing.assert_array_equal(alone.all_reduce(x), x)


def test_a_dlpack_input_that_is_not_contiguous_is_copied(alone):
    bits = np.arange(6, dtype=np.uint32).reshape(2, 3).T
    np.testing.assert_array_equal(alone.all_reduce(Tensor(bits, UINT)), bits)


def test_an_output_that_is_not_contiguous_is_refused(alone):
    x = np.zeros((2, 3)).T
    with pytest.raises(anyccl.InvalidArgument, match=r"out of shape \(3, 2\) is not contiguous"):
        alone.all_reduce(x, out=x)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), ()])
def test_arrays_without_elements_or_dimensions_are_arrays(alone, shape):
    assert alone.all_reduce(np.ones(shape)).shape == shape
    assert alone.all_gather(np.ones(shape)).shape == (1, *shape)


def test_a_numpy_scalar_is_an_array_without_dimensions(alone):
    y = alone.all_reduce(np.float32(3))
    assert y.shape == () and y == 3


def test_an_array_on_another_device_is_refused_by_its_name(alone):
    with pytest.raises(anyccl.Unsupported, match="x is on cuda:1.*host memory"):
        alone.all_reduce(Tensor(np.ones(3, np.uint32), UINT, device=(2, 1)))


def test_an_unknown_version_of_dlpack_is_refused(alone):
    with pytest.raises(anyccl.Unsupported, match="DLPack 2"):
        alone.all_reduce(Tensor(np.ones(3, np.uint32), UINT, flags=0, major=2))


@pytest.mark.parametrize(
    "x, why",
    [
        (np.ones(2, ">f4"), ">f"),
        (np.ones(2, "g"), "'g'"),
        (np.ones(2, "M8[s]"), "M8"),
        (np.ones(2, [("a", "f4")]), "T{"),
        (array.array("u", "ab"), "'w'|'u'"),
        (Tensor(np.ones(2, np.uint32), FLOAT, lanes=2), "2 lanes"),
        (Tensor(np.ones(2, np.uint32), 9), "code 9"),
    ],
)
def test_an_element_type_that_the_library_has_not_is_refused(alone, x, why):
    with pytest.raises(anyccl.Unsupported, match=why):
        alone.all_reduce(x)


@pytest.mark.parametrize("x", [3, 1.5, [1, 2], "text", None, object()])
def test_what_is_no_array_is_refused(alone, x):
    with pytest.raises(anyccl.InvalidArgument, match="not an array"):
        alone.all_reduce(x)


def test_an_output_of_another_type_is_refused(alone):
    with pytest.raises(anyccl.InvalidArgument, match="out is of int64, but the result of float64"):
        alone.broadcast(np.ones(2), root=0, out=np.ones(2, np.int64))
    with pytest.raises(anyccl.Unsupported, match="outputType. is i64, and sums of f64 are no such elements"):
        alone.all_reduce(np.ones(2), out=np.ones(2, np.int64))


def test_an_output_of_another_shape_is_refused(alone):
    with pytest.raises(anyccl.InvalidArgument, match=r"out has the shape \(2, 3\), but the result \(3, 2\)"):
        alone.all_reduce(np.ones((3, 2)), out=np.ones((2, 3)))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float64", "complex128"])
def test_inputs_of_any_layout_are_read_in_c_order(alone, dtype):
    rng = np.random.default_rng(7)

    def laid_out():
        shape = rng.integers(0, [2, 5, 40][rng.integers(3)] + 1, rng.integers(1, 5))
        steps = [(1, 1, 2, 3, -1, -2)[rng.integers(6)] for _ in shape]
        whole = rng.integers(0, 100, [extent * abs(step) for extent, step in zip(shape, steps)]).astype(dtype)
        x = whole[tuple(slice(None, None, step) for step in steps)].transpose(rng.permutation(len(shape)))
        return x if rng.integers(4) else np.broadcast_to(x, (3, *x.shape))

    for _ in range(300):
        x = laid_out()
        assert np.array_equal(alone.all_reduce(x, "sum"), x), (x.shape, x.strides)
