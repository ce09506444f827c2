"""Mixture of experts: where tokens go, and the way back."""

import time

import numpy as np
import pytest

import anyccl


def test_tokens_go_to_their_experts_and_come_back_weighted(two):
    """Two experts on each rank; expert e multiplies by e + 1."""

    def run(c):
        experts = np.array([[0, 3], [2, -1], [1, 1]]) if c.rank == 0 else np.array([[3, 0]])
        tokens = np.arange(1.0, 1 + len(experts))[:, None] * [1, 10] + 100 * c.rank
        weights = np.full(experts.shape, 0.5)
        routing = c.route(experts, 4)
        rows = routing.dispatch(tokens)
        assert rows.shape == (routing.rows, 2) and sum(routing.counts) == routing.rows
        at = 0
        for local, count in enumerate(routing.counts):
            rows[at : at + count] *= 2 * c.rank + local + 1
            at += count
        back = routing.combine(rows, weights)
        factors = np.where(experts < 0, 0, experts + 1).sum(1)
        np.testing.assert_allclose(back, tokens * factors[:, None] * 0.5)
        return routing.counts, routing.dropped, repr(routing)

    assert two.each(run) == [
        ([2, 2], 0, "<anyccl.Routing, 3 tokens, 4 rows>"),
        ([1, 2], 0, "<anyccl.Routing, 1 tokens, 3 rows>"),
    ]


def test_capacity_drops_tokens_and_padding_fixes_sizes(two):
    def run(c):
        routing = c.route(np.zeros(3, np.int64), 2, capacity=2, padded=True)
        rows = routing.dispatch(np.full(3, c.rank + 1.0))
        return routing.dropped, routing.counts, rows.tolist(), routing.combine(rows).tolist()

    assert two.each(run) == [
        (1, [4], [1, 1, 2, 2], [1, 1, 0]),
        (1, [0], [0, 0, 0, 0], [2, 2, 0]),
    ]


def test_a_rank_without_tokens_takes_part(two):
    def run(c):
        routing = c.route([[0, 1]] if c.rank == 0 else [], 2)
        return routing.dispatch(np.ones((routing.tokens, 3))).shape, routing.counts

    assert two.each(run) == [((1, 3), [1]), ((1, 3), [1])]


def test_tokens_are_read_when_earlier_operations_have_written(two):
    def run(c):
        routing = c.route(np.array([[0], [1]]), 2)
        tokens = np.ones((2, 2))
        work = None
        if c.rank == 0:
            work = c.all_reduce(tokens, out=tokens, async_op=True)
        else:
            time.sleep(0.05)  # in which the other rank would read too early
            c.all_reduce(tokens, out=tokens)
        rows = routing.dispatch(tokens.T if c.rank == 0 else tokens)
        if work is not None:
            work.wait()
        return rows.tolist()

    assert two.each(run) == [[[2, 2], [2, 2]]] * 2


def test_results_go_into_out(alone):
    routing, out, back = alone.route([0, 0], 1), np.zeros(2), np.zeros(2)
    assert routing.dispatch(np.ones(2), out=out) is out and out.tolist() == [1, 1]
    assert routing.combine(out, [[2.0], [3.0]] and np.array([2.0, 3.0]), out=back) is back and back.tolist() == [2, 3]


def test_shapes_and_types_are_checked(alone):
    routing = alone.route(np.array([[0, 1], [1, 0]]), 2)
    assert (routing.tokens, routing.choices, routing.rows) == (2, 2, 4)
    with pytest.raises(anyccl.InvalidArgument, match="each of 2 tokens"):
        routing.dispatch(np.ones(3))
    with pytest.raises(anyccl.InvalidArgument, match="each of 4 rows"):
        routing.combine(np.ones(3))
    with pytest.raises(anyccl.InvalidArgument, match=r"weights has the shape \(2,\), but needs \(2, 2\)"):
        routing.combine(np.ones(4), np.ones(2))
    with pytest.raises(anyccl.InvalidArgument, match="weights is of float32, but x of float64"):
        routing.combine(np.ones(4), np.ones((2, 2), np.float32))


@pytest.mark.parametrize(
    "experts, count, options, why",
    [
        (np.array([5]), 2, {}, "5"),
        (np.array([1 << 40]), 2, {}, "expert"),
        (np.ones(2), 2, {}, "needs integers"),
        (np.zeros((1, 1, 1), int), 2, {}, r"needs \(tokens,\)"),
        (np.array([0]), 2, {"capacity": 0}, "capacity is 0"),
        (np.array([0]), 2, {"padded": True}, "capacity"),
    ],
)
def test_what_is_wrong_is_named(alone, experts, count, options, why):
    with pytest.raises(anyccl.InvalidArgument, match=why):
        alone.route(experts, count, **options)
