"""Calls on one array without a wait between them: each reads what the earlier ones wrote, in every layout and form."""

import random

import numpy as np
import pytest

import anyccl

VIEWS = [
    lambda a, i: a[:, i], lambda a, i: a[i:, ::-1], lambda a, i: a.T[:2], lambda a, i: a[::2, 1:6:2], lambda a, i: a[::-1][i],
    lambda a, i: a[i], lambda a, i: a[:, i:i + 1].T,
]


def reference(arrays, x, out, root):
    """What the call leaves on all ranks."""
    given = [view(a).copy() for a, view in zip(arrays, [x] * len(arrays))]
    total = sum(given) if root is None else given[root]
    for a in arrays:
        a[out, :total.size] = total.reshape(-1)


def call(c, array, x, out, root, **how):
    given = x(array)
    result = array[out, :given.size]
    if root is None:
        return c.all_reduce(given, out=result, **how)
    return c.broadcast(given if c.rank == root else None, root, out=result, **how)


@pytest.mark.parametrize("forms", [["blocking", "async"], ["stream"], ["blocking", "async", "stream", "other stream", "group"]],
                         ids=["works", "a stream", "all"])
@pytest.mark.parametrize("seed", range(12))
def test_calls_see_what_the_earlier_ones_wrote(two, forms, seed):
    def plan():
        chosen = random.Random(seed)
        for _ in range(10):
            i, out = chosen.randrange(5), chosen.randrange(6)
            view = chosen.choice(VIEWS)
            if view is VIEWS[5] and i == out:  # overlaps, and is not copied
                continue
            if view(np.empty((6, 6)), i).size > 6:
                continue
            yield (lambda a, view=view, i=i: view(a, i)), out, chosen.choice([None, 0, 1]), chosen.choice(forms)

    arrays = [np.arange(36).reshape(6, 6) * (r + 1) for r in range(2)]
    begin = [a.copy() for a in arrays]
    for x, out, root, _ in plan():
        reference(arrays, x, out, root)

    def run(c):
        mine, works = begin[c.rank], []
        streams = {"stream": anyccl.Stream(), "other stream": anyccl.Stream()}
        for x, out, root, form in plan():
            if form == "group":
                with anyccl.group():
                    call(c, mine, x, out, root)
            elif form == "async":
                works.append(call(c, mine, x, out, root, async_op=True))
            else:
                call(c, mine, x, out, root, stream=streams.get(form))
        for work in reversed(works):
            work.wait()
        for stream in streams.values():
            stream.synchronize()
        return mine

    for got, right in zip(two.each(run), arrays):
        assert (got == right).all()
