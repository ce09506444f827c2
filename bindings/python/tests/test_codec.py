"""Codecs: payloads, all_reduce with them, and what is refused."""

import numpy as np
import pytest

import anyccl
from anyccl import codec


@pytest.fixture
def x():
    return np.random.default_rng(1).standard_normal(1000).astype("float32")


@pytest.mark.parametrize("name, bound", [("bf16", 1 / 256), ("f16", 1 / 2048), ("int8", 1 / 252), ("mxint8", 1 / 128),
                                         ("mxfp8_e4m3", 1 / 8), ("mxfp8_e5m2", 1 / 8), ("int4", 1 / 13.8)])
def test_payloads_are_decoded_and_added_up(x, name, bound):
    payload = codec.encode(name, x)
    assert payload.dtype == np.uint8 and payload.size == codec.payload_bytes(name, x.size)
    y = np.empty_like(x)
    assert codec.decode(name, [payload], y) is y
    assert np.abs(y - x).max() <= bound * np.abs(x).max()
    assert np.array_equal(codec.decode(name, [payload, payload], np.empty_like(x)), 2 * y)
    out = np.zeros(payload.size, "uint8")
    assert codec.encode(name, x, out=out) is out and np.array_equal(out, payload)


def test_ranks_sum_and_average(two, x):
    def run(c):
        coded = codec.AllReduce(c, "int8", everywhere=True)
        total = coded.run(x * (1 + c.rank))
        mean = (x * (1 + c.rank)).astype("float16")
        assert coded.run(mean, out=mean, op="avg") is mean
        coded.destroy()
        with pytest.raises(anyccl.InvalidUsage, match="was destroyed"):
            coded.run(mean)
        return total, mean

    (total, mean), (other, _) = two.each(run)
    assert np.array_equal(total, other)
    assert np.abs(total - 3 * x).max() < 0.05
    assert np.abs(mean.astype("float32") - 1.5 * x).max() < 0.05


def test_one_host_is_exact(two, x):
    sums = two.each(lambda c: codec.AllReduce(c, "int4").run(x))
    assert np.array_equal(sums[0], 2 * x)


def test_wrong_arguments_raise(two, x):
    def run(c):
        coded = codec.AllReduce(c, "int8", everywhere=True)
        for call, error, words in [
            (lambda: coded.run(x, op=anyccl.ReduceOp.max), anyccl.Unsupported, "operator 2 with codec int8"),
            (lambda: coded.run(x, op="max"), anyccl.InvalidArgument, "op is 'max' with codec int8"),
            (lambda: coded.run(x.astype("int32")), anyccl.Unsupported, "datatype 2 with codec int8"),
            (lambda: coded.run(x, out=x[1:]), anyccl.InvalidArgument, r"shape \(999\,?\), but the result \(1000"),
            (lambda: codec.AllReduce(c, "int5"), anyccl.Unsupported, "codec int5: there are bf16"),
            (lambda: codec.encode("int8", x, out=np.zeros(9, "uint8")), anyccl.InvalidArgument, "bytes is 9"),
            (lambda: codec.decode("int8", [x], x), anyccl.InvalidArgument, "uint8"),
            (lambda: codec.decode("int8", [], x), anyccl.InvalidArgument, "sources is 0|bytes is 0"),
        ]:
            with pytest.raises(error, match=words):
                call()

    two.each(run)


def test_a_name_that_one_rank_has_wrong_is_an_error_of_all(two):
    def run(c):
        with pytest.raises(anyccl.Error, match="int5: there are" if c.rank else "rank 1 of a codec that there is not"):
            codec.AllReduce(c, "int5" if c.rank else "int8")

    two.each(run)


def test_arrays_may_lie_in_any_order(two, x):
    table = x.reshape(10, 100).T
    sums = two.each(lambda c: codec.AllReduce(c, "int8", everywhere=True).run(table))
    assert sums[0].shape == (100, 10) and np.abs(sums[0] - 2 * table).max() < 0.05
    assert np.array_equal(codec.encode("int8", table), codec.encode("int8", np.ascontiguousarray(table)))


def test_if_slow_all_ranks_know_whether_the_codec_is_used(two):
    def run(c):
        coded = codec.AllReduce(c, "int8", everywhere=True, if_slow=True)
        used = coded.uses_codec("float32"), coded.uses_codec(np.float16)
        with pytest.raises(anyccl.Unsupported, match="datatype 2 with codec int8"):
            coded.uses_codec("int32")
        coded.destroy()
        with pytest.raises(anyccl.InvalidUsage, match="was destroyed"):
            coded.uses_codec("float32")
        return used

    first, second = two.each(run)
    assert first == second


def test_ranks_that_differ_raise(two):
    def run(c):
        with pytest.raises(anyccl.InvalidUsage, match="rank 0 creates a coded AllReduce of int8, but rank 1 of int4"):
            codec.AllReduce(c, "int4" if c.rank else "int8")

    two.each(run)
