"""Sparse vectors: what is sent and what stays add up, and bad payloads raise."""

import numpy as np
import pytest

import anyccl
from anyccl import sparse


@pytest.fixture
def x():
    return np.random.default_rng(1).standard_normal(100_000).astype("float32")


@pytest.mark.parametrize("values", ["float32", "bfloat16", np.float16])
def test_what_is_sent_and_what_stays_add_up(x, values):
    residual, momentum, sent = x.copy(), np.ones_like(x), np.zeros_like(x)
    cut = sparse.top_k(residual, 1000)
    payload = sparse.pack(residual, cut, momentum=momentum, values=values)
    assert payload.dtype == np.uint8
    assert payload.size == sparse.bound(x.size, 1000, values)
    assert sparse.add(payload, sent) is sent
    largest = np.sort(np.argsort(-abs(x), kind="stable")[:1000])
    assert np.array_equal(np.flatnonzero(sent), largest)
    assert np.array_equal(np.flatnonzero(momentum == 0), largest)
    assert np.array_equal(sent + residual, x)


def test_a_threshold_takes_about_as_many(x):
    cut = sparse.threshold(x, 1000)
    assert 600 < cut.entries < 1500
    assert sparse.threshold(np.zeros(50, "float32"), 10).entries == 0


def test_momentum(x):
    u, v = np.ones_like(x), np.zeros_like(x)
    sparse.momentum(u, v, x, 0.5)
    assert np.array_equal(u, np.float32(0.5) + x)
    assert np.array_equal(v, u)


def test_ranks_gather_payloads(two):
    def run(c):
        residual, total = np.arange(1000, dtype="float32") * (1 + c.rank), np.zeros(1000, "float32")
        mine = np.zeros(sparse.bound(1000, 10), "uint8")
        assert 0 < sparse.pack(residual, sparse.top_k(residual, 10), out=mine) <= mine.size
        for payload in c.all_gather(mine).reshape(2, -1):
            sparse.add(payload, total)
        return total.tolist()

    assert two.each(run) == [[0.0] * 990 + [3.0 * i for i in range(990, 1000)]] * 2


def test_wrong_arguments_raise(x):
    payload = sparse.pack(x, sparse.top_k(x, 10))
    for call, words in [
        (lambda: sparse.top_k(x.astype("float64"), 1), "x is of float64"),
        (lambda: sparse.top_k(x, x.size + 1), "k is 100001"),
        (lambda: sparse.add(payload, x[1:].copy()), "of 100000 elements"),
        (lambda: sparse.add(payload[:20], x), "cut off"),
        (lambda: sparse.add(x, x), "uint8"),
        (lambda: sparse.momentum(x[1:], x.copy(), x.copy(), 1), "99999 and 100000"),
        (lambda: sparse.pack(x, sparse.top_k(x, 10), out=np.zeros(9, "uint8")), "has room for 9 bytes"),
    ]:
        with pytest.raises(anyccl.InvalidArgument, match=words):
            call()
    with pytest.raises(anyccl.Unsupported, match="float32, bfloat16 or float16"):
        sparse.bound(10, 1, "int8")
