"""Grids of ranks: the groups of data, tensor, pipeline and other parallelisms from one communicator."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ._core import Communicator, _Topology
from .errors import InvalidArgument
from .neighbors import Neighbors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Grid(Neighbors):
    """All ranks of a communicator as the places of a grid whose dimensions have names.

    Ranks are in row-major order: the last dimension varies fastest, so name first what is farthest apart.
    One dimension may be -1: it is what the others leave.

    Parameters
    ----------
    comm : Communicator
    periodic : names of the dimensions that are circles
    **dims : sizes, in the order of the grid

    Examples
    --------
    >>> grid = anyccl.Grid(world, pipeline=4, data=-1, tensor=2)
    >>> tensor = grid.group("tensor")  # ranks that share a layer
    >>> replicas = grid.group("data", "tensor")  # all ranks of this stage of the pipeline

    Neighbours are, for each dimension, the rank before and the rank after; None beyond an edge. What goes to
    the one before arrives there as from the one after.
    """

    def __init__(self, comm: Communicator, *, periodic: tuple[str, ...] = (), **dims: int) -> None:
        if not dims:
            raise InvalidArgument("a grid needs dimensions, as Grid(comm, data=2, tensor=-1)")
        open_dims = [name for name, size in dims.items() if size == -1]
        rest = math.prod(size for size in dims.values() if size != -1)
        if len(open_dims) > 1 or rest < 1 or any(size < 1 for size in dims.values() if size != -1):
            raise InvalidArgument(f"dimensions are {dims}: each must be 1 or more, and at most one -1")
        if comm.size % rest or (not open_dims and comm.size != rest):
            raise InvalidArgument(f"dimensions are {dims}, but the communicator has {comm.size} ranks")
        self.dims = {name: comm.size // rest if size == -1 else size for name, size in dims.items()}
        self.periodic = tuple(periodic)
        self._check(self.periodic)
        circles = [int(name in self.periodic) for name in self.dims]
        super().__init__(comm, _Topology.grid(comm, list(self.dims.values()), circles))

    def coords(self, rank: int | None = None) -> dict[str, int]:
        """The place of `rank`, by default this one."""
        rank = self.comm.rank if rank is None else rank
        if not 0 <= rank < self.comm.size:
            raise InvalidArgument(f"rank {rank} is not in 0..{self.comm.size - 1}")
        place = {}
        for name, size in reversed(self.dims.items()):
            rank, place[name] = divmod(rank, size)
        return {name: place[name] for name in self.dims}

    def rank(self, **coords: int) -> int | None:
        """The rank at a place: this rank's, but for the dimensions that are given. None beyond an edge."""
        self._check(coords)
        place = self.coords() | coords
        rank = 0
        for name, size in self.dims.items():
            at = place[name] % size if name in self.periodic else place[name]
            if not 0 <= at < size:
                return None
            rank = rank * size + at
        return rank

    def shift(self, dim: str, displacement: int = 1) -> tuple[int | None, int | None]:
        """The ranks that far before and after this one along `dim`: where to receive from and send to."""
        self._check((dim,))
        here = self.coords()[dim]
        return self.rank(**{dim: here - displacement}), self.rank(**{dim: here + displacement})

    def group(self, *dims: str) -> Communicator:
        """A communicator of the ranks that differ from this one in `dims` only. Collective over all ranks."""
        self._check(dims)
        color = 0
        for name, at in self.coords().items():
            if name not in dims:
                color = color * self.dims[name] + at
        group = self.comm.split(color, self.comm.rank)
        assert group is not None  # as the color is not None
        return group

    def __repr__(self) -> str:
        return f"<anyccl.Grid, {' x '.join(f'{name} {size}' for name, size in self.dims.items())}>"

    def _check(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.dims:
                raise InvalidArgument(f"the grid has no dimension {name!r}, but {', '.join(self.dims)}")


class Graph(Neighbors):
    """The ranks that this one hears of and sends to, in any order. Local: making one sends nothing.

    A rank may occur several times, and then its messages match in order. Graphs of all ranks fit if r is a source
    of q as often as q is a destination of r.

    Parameters
    ----------
    comm : Communicator
    sources, destinations : sequence of int
    """

    def __init__(self, comm: Communicator, sources: Sequence[int], destinations: Sequence[int]) -> None:
        super().__init__(comm, _Topology.graph(comm, list(sources), list(destinations)))

    def __repr__(self) -> str:
        return f"<anyccl.Graph, from {self.sources} to {self.destinations}>"
