"""Exchanges between neighbours of grids and graphs."""

import numpy as np
import pytest

import anyccl


def test_a_grid_has_the_ranks_before_and_after_in_each_dimension(four):
    grids = [anyccl.Grid(c, a=2, b=2, periodic=("b",)) for c in four.comms]
    assert grids[0].sources == grids[0].destinations == [None, 2, 1, 1]
    assert grids[3].sources == [1, None, 2, 2]


def test_neighbours_of_a_line_get_each_others_arrays(four):
    def run(c):
        grid = anyccl.Grid(c, line=4)
        return grid.neighbor_all_gather(np.array([c.rank, 10 * c.rank])).tolist()

    assert four.each(run) == [
        [[0, 0], [1, 10]],
        [[0, 0], [2, 20]],
        [[1, 10], [3, 30]],
        [[2, 20], [0, 0]],
    ]


def test_blocks_go_to_their_neighbours_on_a_circle(four):
    def run(c):
        grid = anyccl.Grid(c, ring=4, periodic=("ring",))
        return grid.neighbor_all_to_all(np.array([-c.rank, c.rank])).tolist()

    assert four.each(run) == [[3, -1], [0, -2], [1, -3], [2, 0]]


def test_blocks_beyond_an_edge_of_out_are_not_written(four):
    def run(c):
        out = np.full((2, 1), 9)
        assert anyccl.Grid(c, line=4).neighbor_all_gather(np.array([c.rank]), out=out) is out
        return out.ravel().tolist()

    assert four.each(run) == [[9, 1], [0, 2], [1, 3], [2, 9]]


def test_blocks_of_different_sizes(four):
    """Each rank sends as many rows as its number to the one after."""

    def run(c):
        ring = anyccl.Graph(c, [(c.rank - 1) % 4], [(c.rank + 1) % 4])
        x = np.full((c.rank, 2), c.rank)
        return ring.neighbor_all_to_all_v(x, [c.rank], [(c.rank - 1) % 4]).tolist()

    assert four.each(run) == [[[3, 3]] * 3, [], [[1, 1]], [[2, 2]] * 2]


def test_blocks_may_lie_apart(two):
    def run(c):
        graph = anyccl.Graph(c, [1 - c.rank], [1 - c.rank])
        return graph.neighbor_all_to_all_v(np.arange(4), [2], [2], send_displs=[1], recv_displs=[3]).tolist()

    assert two.each(run) == [[0, 0, 0, 1, 2]] * 2


def test_a_graph_may_have_a_rank_twice_and_this_one(two):
    def run(c):
        graph = anyccl.Graph(c, [0, 0], [0, 0]) if c.rank == 0 else anyccl.Graph(c, [], [])
        return graph.neighbor_all_to_all(np.array([[5], [6]])[: len(graph.destinations)]).tolist()

    assert two.each(run) == [[[5], [6]], []]


@pytest.mark.parametrize("how", ["stream", "group"])
def test_exchanges_in_streams_and_groups(two, how):
    def run(c):
        graph, stream = anyccl.Graph(c, [1 - c.rank], [1 - c.rank]), anyccl.Stream()
        if how == "stream":
            got = graph.neighbor_all_gather(np.full(3, c.rank), stream=stream)
            del graph
            stream.synchronize()
        else:
            with anyccl.group():
                got = graph.neighbor_all_gather(np.full(3, c.rank))
                c.barrier()
                del graph
        return got.tolist()

    assert two.each(run) == [[[1, 1, 1]], [[0, 0, 0]]]


def test_shapes_are_checked(two):
    graph = anyccl.Graph(two.comms[0], [1], [1, 1])
    with pytest.raises(anyccl.InvalidArgument, match="each of 2 destinations"):
        graph.neighbor_all_to_all(np.ones(3))
    with pytest.raises(anyccl.InvalidArgument, match="each of 1 sources"):
        graph.neighbor_all_to_all_v(np.ones(2), [1, 1], [1, 1])
    with pytest.raises(anyccl.InvalidArgument, match=r"sources\[0\] is 7"):
        anyccl.Graph(two.comms[0], [7], [])
    assert repr(graph) == "<anyccl.Graph, from [1] to [1, 1]>"


def test_arrays_of_different_types_go_to_each_rank(four):
    kinds = ["int8", "float32", "float64", "complex64"]

    def run(c):
        xs = [np.full(c.rank + r, c.rank).astype(kinds[r]) if c.rank + r else None for r in range(4)]
        outs = [np.empty(c.rank + r, kinds[c.rank]) if c.rank + r else None for r in range(4)]
        assert c.all_to_all_w(xs, outs) is outs
        return [None if out is None else out.real.tolist() for out in outs]

    expected = [[None if me + r == 0 else [r] * (me + r) for r in range(4)] for me in range(4)]
    assert four.each(run) == expected


def test_all_to_all_w_needs_one_array_for_each_rank(two):
    with pytest.raises(anyccl.InvalidArgument, match="xs has 1 entries"):
        two.comms[0].all_to_all_w([None], [None, None])
