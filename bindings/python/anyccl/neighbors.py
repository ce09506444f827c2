"""Exchanges between neighbours, which grids and graphs have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import Communicator, Stream, _Topology

if TYPE_CHECKING:
    from collections.abc import Sequence


class Neighbors:
    """One rank's neighbours, and exchanges with them.

    Every rank that is a neighbour of another makes the call. There are messages between neighbours and no others,
    so it does not wait for all ranks. `out` is not `x`. Blocks of neighbours that are None, beyond an edge, are
    neither read nor written: they are 0 in a new result. With `stream`, or in a group, as `Communicator` says.
    """

    def __init__(self, comm: Communicator, topology: _Topology) -> None:
        self.comm = comm
        self._topology = topology

    @property
    def sources(self) -> list[int | None]:
        """The ranks that this one hears of, in the order of blocks; None beyond an edge."""
        return self._topology.sources

    @property
    def destinations(self) -> list[int | None]:
        """The ranks that this one sends to, in the order of blocks; None beyond an edge."""
        return self._topology.destinations

    def neighbor_all_gather(self, x: Any, *, out: Any = None, stream: Stream | None = None) -> Any:
        """Send an array to all destinations.

        Parameters
        ----------
        x : array of any shape
            Of the same shape on neighbours.
        out : array, optional
        stream : Stream, optional

        Returns
        -------
        array
            Of shape ``(len(sources), *x.shape)``: [i] is the array of ``sources[i]``.
        """
        return self._topology.all_gather(x, out, stream)

    def neighbor_all_to_all(self, x: Any, *, out: Any = None, stream: Stream | None = None) -> Any:
        """Send block j of an array to ``destinations[j]``.

        Parameters
        ----------
        x : array of shape (len(destinations), ...)
        out : array, optional
        stream : Stream, optional

        Returns
        -------
        array
            Of shape ``(len(sources), *x.shape[1:])``: [i] is the block that came from ``sources[i]``.
        """
        return self._topology.all_to_all(x, out, stream)

    def neighbor_all_to_all_v(
        self,
        x: Any,
        send_counts: Sequence[int],
        recv_counts: Sequence[int],
        *,
        send_displs: Sequence[int] | None = None,
        recv_displs: Sequence[int] | None = None,
        out: Any = None,
        stream: Stream | None = None,
    ) -> Any:
        """Exchange blocks of different sizes, of rows along the first dimension.

        Parameters
        ----------
        x : array of shape (rows, ...)
        send_counts, recv_counts : sequence of int
            Rows for each destination, and from each source. Both ends of a message have the same number.
        send_displs, recv_displs : sequence of int, optional
            The first row of each block in `x` and in the result. Without it they follow each other.
        out : array, optional
            Of rows as `x` has them; may have more than are written.
        stream : Stream, optional

        Returns
        -------
        array
            Of shape ``(sum(recv_counts), *x.shape[1:])``, or as far as `recv_displs` reach.
        """
        return self._topology.all_to_all_v(x, send_counts, recv_counts, send_displs, recv_displs, out, stream)
