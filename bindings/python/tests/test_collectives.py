"""Every collective, type and operator, against NumPy's own result."""

import functools

import ml_dtypes
import numpy as np
import pytest

import anyccl

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
COMPLEX = ["complex64", "complex128"]
DTYPES = [np.dtype(d) for d in SIGNED + UNSIGNED + FLOATS + COMPLEX + ["bool"]]

LOGICAL = {"land": np.logical_and, "lor": np.logical_or, "lxor": np.logical_xor}
BITWISE = {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}
ARITHMETIC = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
# What arithmetic and bits mean to bool.
TRUTH = {"sum": "lor", "max": "lor", "bor": "lor", "prod": "land", "min": "land", "band": "land", "bxor": "lxor"}


def values(dtype, ranks):
    """Small whole numbers: their sums, products and quarters are exact in every type."""
    rng = np.random.default_rng(20261121)
    low = 0 if dtype.kind in "ub" else -2
    return rng.integers(low, 2 if dtype.kind == "b" else 3, (ranks, 5, 7)).astype(dtype)


def numpys(op, xs):
    """What NumPy makes of it; None where the library says unsupported."""
    dtype = xs[0].dtype
    if dtype.kind == "b":
        op = TRUTH.get(op, op)
        return functools.reduce(LOGICAL[op], xs) if op in LOGICAL else None
    if op == "avg":
        total = functools.reduce(np.add, xs)
        return np.trunc(total / 4).astype(dtype) if dtype.kind in "iu" else total / np.array(4, dtype)
    if op in ARITHMETIC:
        return None if dtype.kind == "c" and op in ("max", "min") else functools.reduce(ARITHMETIC[op], xs)
    if dtype.kind not in "iu":
        return None
    if op in BITWISE:
        return functools.reduce(BITWISE[op], xs)
    return functools.reduce(LOGICAL[op], [x != 0 for x in xs]).astype(dtype)


@pytest.mark.parametrize("op", [op.name for op in anyccl.ReduceOp])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_all_reduce_is_numpys_reduction(four, dtype, op):
    xs = values(dtype, 4)
    expected = numpys(op, list(xs))
    if expected is None:
        with pytest.raises(anyccl.Unsupported, match=op):
            four.each(lambda c: c.all_reduce(xs[c.rank], op))
        return
    for result in four.each(lambda c: c.all_reduce(xs[c.rank], op)):
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_broadcast_gives_every_rank_the_bits_of_the_root(four, dtype):
    x = values(dtype, 1)[0]
    for result in four.each(lambda c: c.broadcast(x if c.rank == 2 else np.zeros_like(x), 2)):
        assert result.dtype == dtype and result.tobytes() == x.tobytes()


def test_an_operator_is_taken_by_name_and_as_enumerator(four):
    results = four.each(lambda c: c.all_reduce(np.array([c.rank]), anyccl.ReduceOp.max))
    assert [int(r[0]) for r in results] == [3] * 4


def test_an_operator_that_does_not_exist_is_refused_with_those_that_do(alone):
    with pytest.raises(anyccl.InvalidArgument, match="'mean'; it is one of sum, prod"):
        alone.all_reduce(np.ones(2), "mean")


def test_all_reduce_in_place_returns_the_same_array(four):
    def run(c):
        x = np.full(3, c.rank)
        assert c.all_reduce(x, out=x) is x
        assert x.tolist() == [6, 6, 6]

    four.each(run)


def test_a_new_result_leaves_the_input_as_it_was(four):
    def run(c):
        x = np.full(3, c.rank)
        c.all_reduce(x)
        assert x.tolist() == [c.rank] * 3

    four.each(run)


def test_broadcast_needs_no_input_elsewhere_than_at_the_root(four):
    results = four.each(lambda c: c.broadcast(np.arange(3) if c.rank == 0 else None, out=np.zeros(3, int)))
    assert all(r.tolist() == [0, 1, 2] for r in results)


def test_reduce_gives_the_root_the_sum_and_others_none(four):
    results = four.each(lambda c: c.reduce(np.full(2, c.rank), root=1))
    assert results[1].tolist() == [6, 6]
    assert [r for i, r in enumerate(results) if i != 1] == [None] * 3


def test_scan_is_of_the_ranks_up_to_this_one(four):
    results = four.each(lambda c: c.scan(np.array([c.rank + 1, 10])))
    assert [list(r) for r in results] == [[1, 10], [3, 20], [6, 30], [10, 40]]


def test_exscan_is_of_the_ranks_before_this_one_and_none_on_rank_0(four):
    results = four.each(lambda c: c.exscan(np.array([c.rank + 1]), "max"))
    assert results[0] is None
    assert [list(r) for r in results[1:]] == [[1], [2], [3]]


def test_scan_in_place(four):
    def in_place(c):
        x = np.array([c.rank + 1.0])
        assert c.scan(x, out=x) is x
        return x[0]

    assert four.each(in_place) == [1, 3, 6, 10]


def test_reduce_scatter_gives_rank_r_block_r(four):
    results = four.each(lambda c: c.reduce_scatter(np.arange(8).reshape(4, 2)))
    assert [r.tolist() for r in results] == [[0, 4], [8, 12], [16, 20], [24, 28]]


def test_reduce_scatter_in_place_writes_the_ranks_own_block(four):
    def run(c):
        x = np.ones((4, 2))
        c.reduce_scatter(x, out=x[c.rank])
        assert x[c.rank].tolist() == [4, 4]

    four.each(run)


def test_all_gather_puts_a_dimension_of_ranks_in_front(four):
    for result in four.each(lambda c: c.all_gather(np.full((3, 4), c.rank))):
        assert result.shape == (4, 3, 4)
        assert result[:, 0, 0].tolist() == [0, 1, 2, 3]


def test_all_gather_in_place_reads_the_ranks_own_block(four):
    def run(c):
        out = np.zeros((4, 2), int)
        out[c.rank] = c.rank
        assert c.all_gather(out[c.rank], out=out) is out
        assert out[:, 1].tolist() == [0, 1, 2, 3]

    four.each(run)


def test_gather_gives_the_root_all_and_others_none(four):
    results = four.each(lambda c: c.gather(np.array([c.rank]), root=3))
    assert results[3].tolist() == [[0], [1], [2], [3]]
    assert results[:3] == [None] * 3


def test_scatter_gives_rank_r_block_r_of_the_root(four):
    x = np.arange(8).reshape(4, 2)
    results = four.each(lambda c: c.scatter(x if c.rank == 0 else np.empty_like(x)))
    assert [r.tolist() for r in results] == x.tolist()


def test_scatter_needs_no_input_elsewhere_than_at_the_root(four):
    x = np.arange(8).reshape(4, 2)
    results = four.each(lambda c: c.scatter(x if c.rank == 1 else None, 1, out=np.zeros(2, int)))
    assert [r.tolist() for r in results] == x.tolist()


def test_all_to_all_transposes_blocks(four):
    results = four.each(lambda c: c.all_to_all(np.arange(4) + 10 * c.rank))
    assert np.array(results).tolist() == np.add.outer(np.arange(4), 10 * np.arange(4)).tolist()


def test_all_to_all_in_place(four):
    def run(c):
        x = np.arange(4) + 10 * c.rank
        assert c.all_to_all(x, out=x).tolist() == [c.rank + 10 * r for r in range(4)]

    four.each(run)


def test_all_gather_v_joins_rows(four):
    for result in four.each(lambda c: c.all_gather_v(np.full((c.rank, 2), c.rank), [0, 1, 2, 3])):
        assert result.tolist() == [[1, 1], [2, 2], [2, 2], [3, 3], [3, 3], [3, 3]]


def test_all_gather_v_leaves_zeros_between_blocks_that_lie_apart(four):
    results = four.each(lambda c: c.all_gather_v(np.array([c.rank + 1]), [1] * 4, displs=[6, 4, 2, 0]))
    assert all(r.tolist() == [4, 0, 3, 0, 2, 0, 1] for r in results)


def test_reduce_scatter_v_gives_each_rank_its_rows(four):
    results = four.each(lambda c: c.reduce_scatter_v(np.arange(6), [0, 1, 2, 3], "sum"))
    assert [r.tolist() for r in results] == [[], [0], [4, 8], [12, 16, 20]]


def test_gather_v_joins_rows_at_the_root(four):
    results = four.each(lambda c: c.gather_v(np.full(c.rank, c.rank), [0, 1, 2, 3] if c.rank == 0 else None))
    assert results[0].tolist() == [1, 2, 2, 3, 3, 3]
    assert results[1:] == [None] * 3


def test_scatter_v_gives_each_rank_its_rows(four):
    def run(c):
        if c.rank == 0:
            return c.scatter_v(np.arange(10), [1, 2, 3, 4])
        return c.scatter_v(None, out=np.zeros(c.rank + 1, int))

    assert [r.tolist() for r in four.each(run)] == [[0], [1, 2], [3, 4, 5], [6, 7, 8, 9]]


def test_all_to_all_v_sends_rank_j_its_rows(four):
    results = four.each(lambda c: c.all_to_all_v(np.full((6, 1), c.rank), [0, 1, 2, 3], [c.rank] * 4))
    for rank, result in enumerate(results):
        assert result.ravel().tolist() == [r for r in range(4) for _ in range(rank)]


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda c: c.reduce_scatter(np.ones((3, 2))), r"shape \(3, 2\).*each of 4 ranks"),
        (lambda c: c.all_to_all(np.ones(())), "each of 4 ranks"),
        (lambda c: c.all_gather_v(np.ones(2), [1, 1, 1]), "one entry for each of 4 ranks"),
        (lambda c: c.all_gather_v(np.ones(2), [1, 1, 1, 1]), "x has 2 rows.*ask for 1"),
        (lambda c: c.all_gather_v(np.ones(2), [-1, 2, 2, 2]), "negative"),
        (lambda c: c.reduce_scatter_v(np.ones(5), [1, 1, 1, 1]), "x has 5 rows.*ask for 4"),
        (lambda c: c.gather_v(np.ones(2), root=c.rank), "the root needs counts"),
        (lambda c: c.scatter_v(None, root=(c.rank + 1) % 4), "other than the root need out"),
        (lambda c: c.scatter(None, root=(c.rank + 1) % 4), "other than the root need x or out"),
        (lambda c: c.broadcast(np.ones(2), root=4), "root 4 is not a rank"),
    ],
)
def test_a_wrong_shape_is_refused_and_nothing_started(four, call, why):
    with pytest.raises(anyccl.InvalidArgument, match=why):
        call(four.comms[0])
    assert four.comms[0].failure is None


def test_ranks_exchange_with_send_and_recv(four):
    def run(c):
        out = np.zeros(2)
        sent = c.send(np.full(2, float(c.rank)), (c.rank + 1) % 4, async_op=True)
        got = c.recv(out, (c.rank + 3) % 4, async_op=True)
        assert sent.wait() is None and got.wait() is out
        return out[0]

    assert four.each(run) == [3, 0, 1, 2]


def test_messages_match_by_tag(two):
    def run(c):
        peer = 1 - c.rank
        first, second = np.zeros(1), np.zeros(1)
        works = [c.send(np.full(1, tag + 10.0 * c.rank), peer, tag=tag, async_op=True) for tag in (1, 2)]
        c.recv(second, peer, tag=2)
        c.recv(first, peer, tag=1)
        for work in works:
            work.wait()
        return first[0], second[0]

    assert two.each(run) == [(11, 12), (1, 2)]


def test_a_message_of_any_rank_has_a_source(four):
    def run(c):
        if c.rank > 0:
            return c.send(np.full(1, float(c.rank)), 0, tag=7)
        found = set()
        for _ in range(3):
            work = c.recv(np.zeros(1), tag=7, async_op=True)
            found.add((work.wait()[0], work.source))
        return found

    assert four.each(run)[0] == {(1, 1), (2, 2), (3, 3)}


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), np.ones(1, np.float32).dtype])
def test_a_pre_multiplied_sum_multiplies_first(four, dtype):
    results = four.each(lambda c: c.all_reduce(np.ones(2, np.float32), c.pre_mul_sum(c.rank, dtype)))
    assert all(r.tolist() == [6, 6] for r in results)


def test_a_pre_multiplied_sum_works_for_bfloat16(four):
    dtype = np.dtype(ml_dtypes.bfloat16)
    results = four.each(lambda c: c.all_reduce(np.ones(2, dtype), c.pre_mul_sum(0.5, "bfloat16")))
    assert all(r.tolist() == [2, 2] for r in results)


def test_hundreds_of_dropped_operators_are_freed(alone):
    for _ in range(600):
        alone.all_reduce(np.ones(1), alone.pre_mul_sum(2, "float64"))


def test_an_operator_of_another_communicator_is_refused(alone, four):
    with pytest.raises(anyccl.InvalidArgument, match="another communicator"):
        alone.all_reduce(np.ones(1), four.comms[0].pre_mul_sum(2, "float64"))


def test_sums_may_be_in_a_wider_type(four):
    x = np.array([1, 2.0 ** -24, 2.0 ** -24, 2.0 ** -24], "float32")
    wide = np.float32(x.astype("float64").sum())
    assert wide != x.sum(dtype="float32")

    def run(c):
        assert c.all_reduce(x[c.rank:c.rank + 1], accumulate="float64") == wide
        block = c.reduce_scatter(np.tile(x[c.rank], (4, 2)), accumulate=np.float64)
        assert np.all(block == wide)
        with pytest.raises(anyccl.Unsupported, match="accumulateType. is f16 and the call is of f32"):
            c.all_reduce(x, accumulate="float16")

    four.each(run)


def test_leaves_have_the_same_bits_on_any_number_of_ranks(alone, two, four):
    leaves = np.random.default_rng(1).standard_normal((8, 4, 30)).astype("float32")

    def run(c):
        mine = leaves.reshape(c.size, -1, 4, 30)[c.rank]
        whole = c.all_reduce(mine, leaves=8)
        assert whole.shape == (4, 30)
        out = np.empty((4, 30), "float64")
        assert c.all_reduce(mine, "avg", out=out, leaves=8) is out
        block = c.reduce_scatter(mine.reshape(-1, c.size, 120 // c.size), leaves=8)
        assert np.array_equal(block, whole.reshape(c.size, -1)[c.rank])
        return whole.tobytes() + out.tobytes()

    expected = leaves
    while len(expected) > 1:
        expected = expected[::2] + expected[1::2]
    results = {run(alone), *two.each(run), *four.each(run)}
    assert len(results) == 1 and results.pop().startswith(expected.tobytes())


def test_leaves_of_a_wrong_number_are_refused(two):
    def run(c):
        with pytest.raises(anyccl.InvalidArgument, match=r"one entry for each of 4 leaves of this rank"):
            c.all_reduce(np.ones((2, 5)), leaves=8)
        with pytest.raises(anyccl.InvalidArgument, match="leaves is 6 and the communicator has 2 ranks"):
            c.all_reduce(np.ones((3, 5)), leaves=6)
        with pytest.raises(anyccl.InvalidArgument, match="leaves is 0"):
            c.all_reduce(np.ones((3, 5)), leaves=0)
        with pytest.raises(TypeError, match="leaves is not an integer"):
            c.all_reduce(np.ones((3, 5)), leaves="many")

    two.each(run)


def test_results_of_another_type(two):
    def run(c):
        x = np.full(1000, 0.1, "float16")
        out = np.empty(1000, "float32")
        assert c.all_reduce(x, out=out) is out
        assert np.all(out == 2 * np.float32(np.float16(0.1)))  # which float16 would round
        assert np.all(c.all_reduce(np.full(10, 100, "int8"), out=np.empty(10, "int32")) == 200)
        block = c.reduce_scatter(np.full((2, 5), 0.1, "float16"), out=np.empty(5, "float32"))
        assert np.all(block == 2 * np.float32(np.float16(0.1)))
        with pytest.raises(anyccl.Unsupported, match="outputType. is i32 and the call is of f16"):
            c.all_reduce(x, out=np.empty(1000, "int32"))
        with pytest.raises(anyccl.InvalidArgument, match="out is of float32"):
            c.scan(x, out=out)

    two.each(run)
