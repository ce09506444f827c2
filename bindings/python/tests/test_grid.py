import pytest

import anyccl


def test_names_every_place(four):
    grid = anyccl.Grid(four.comms[1], data=2, tensor=-1)
    assert grid.dims == {"data": 2, "tensor": 2}
    assert [grid.coords(r) for r in range(4)] == [{"data": d, "tensor": t} for d in (0, 1) for t in (0, 1)]
    assert grid.coords() == {"data": 0, "tensor": 1}
    assert [grid.rank(data=d) for d in (-1, 0, 1, 2)] == [None, 1, 3, None]
    assert repr(grid) == "<anyccl.Grid, data 2 x tensor 2>"


def test_shifts_along_a_line_and_along_a_circle(four):
    line = [anyccl.Grid(c, stage=4).shift("stage") for c in four.comms]
    assert line == [(None, 1), (0, 2), (1, 3), (2, None)]
    circle = [anyccl.Grid(c, stage=4, periodic=("stage",)).shift("stage", 3) for c in four.comms]
    assert circle == [(1, 3), (2, 0), (3, 1), (0, 2)]


def test_groups_are_of_the_ranks_that_differ_in_the_named_dimensions(four):
    def members(comm):
        grid = anyccl.Grid(comm, data=2, tensor=2)
        found = {}
        for dims in ("tensor",), ("data",), ("data", "tensor"), ():
            with grid.group(*dims) as group:
                found[dims] = group.all_gather(memoryview(bytearray([comm.rank]))).tolist()
        return found

    for rank, groups in enumerate(four.each(members)):
        assert [sum(g, []) for g in groups.values()] == [
            [rank // 2 * 2, rank // 2 * 2 + 1],
            [rank % 2, rank % 2 + 2],
            [0, 1, 2, 3],
            [rank],
        ]


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({}, "needs dimensions"),
        ({"a": 3}, "'a': 3.*has 4 ranks"),
        ({"a": -1, "b": -1}, "at most one -1"),
        ({"a": 0, "b": 4}, "1 or more"),
        ({"a": 4, "periodic": ("b",)}, "no dimension 'b', but a"),
    ],
)
def test_names_what_is_wrong(four, dims, message):
    with pytest.raises(anyccl.InvalidArgument, match=message):
        anyccl.Grid(four.comms[0], **dims)


def test_names_dimensions_and_ranks_that_are_not_there(four):
    grid = anyccl.Grid(four.comms[0], a=4)
    with pytest.raises(anyccl.InvalidArgument, match="no dimension 'c', but a"):
        grid.rank(c=1)
    with pytest.raises(anyccl.InvalidArgument, match="rank 4 is not in 0..3"):
        grid.coords(4)
