"""Sparse vectors: the large elements of a vector as bytes that ranks exchange instead of all of it.

>>> from anyccl import sparse
>>> residual += gradient                                         # what was not sent, and what is new
>>> cut = sparse.top_k(residual, len(residual) // 100)
>>> mine = numpy.zeros(sparse.bound(len(residual), cut.entries), "uint8")
>>> sparse.pack(residual, cut, out=mine)
>>> total = numpy.zeros_like(residual)
>>> for payload in comm.all_gather(mine).reshape(comm.size, -1):
...     sparse.add(payload, total)

Vectors are contiguous arrays of float32, of NumPy or any other library in host memory, and of any shape. There is no
communicator and no state in here. `anyccl.torch.hooks` trains with it under DDP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core
from ._core import _SparseCut as Cut

if TYPE_CHECKING:
    import numpy

__all__ = ["Cut", "add", "bound", "momentum", "pack", "threshold", "top_k"]


def threshold(x: Any, keep: int) -> Cut:
    """Choose about `keep` of the largest elements, by the magnitudes of a fixed sample: in one pass.

    Parameters
    ----------
    x : array of float32
    keep : int
        At most as many as there are. The sample is every 61st element (all, up to 8,192): a vector that is unlike it has
        more or fewer entries. Zeros are never taken; infinities and NaNs count as largest.

    Returns
    -------
    Cut
        `entries` says how many they are.
    """
    return _core._sparse_threshold(x, keep)


def top_k(x: Any, k: int) -> Cut:
    """Choose exactly the `k` largest elements; of equal ones, the first. Otherwise as `threshold`."""
    return _core._sparse_top_k(x, k)


def bound(count: int, entries: int, values: Any = "float32") -> int:
    """Return the most bytes that a payload with `entries` of `count` elements has.

    Parameters
    ----------
    count, entries : int
    values : dtype
        "float32", "bfloat16" or "float16".
    """
    return _core._sparse_bound(count, entries, values)


def pack(
    residual: Any, cut: Cut, *, momentum: Any | None = None, values: Any = "float32", out: Any | None = None
) -> numpy.ndarray | int:
    """Move what `cut` takes out of `residual`.

    The rest of rounding to `values` stays in `residual`, so that residual and payload together are the old
    residual; of numbers from 2^29 on, which float16 has not, the rest is rounded. Infinities and NaNs leave nothing.

    Parameters
    ----------
    residual : array of float32
        The array that the cut was made of, unchanged since.
    cut : Cut
    momentum : array of float32, optional
        As long as `residual`; what is taken becomes 0 in it.
    values : dtype
        "float32", "bfloat16" or "float16".
    out : array of uint8, optional
        Has room for `bound` bytes.

    Returns
    -------
    numpy.ndarray or int
        The payload; with `out` its bytes.
    """
    if out is not None:
        return _core._sparse_pack(residual, momentum, cut, values, out)
    import numpy

    payload = numpy.empty(bound(_core._count_of(residual), cut.entries, values), "uint8")
    return payload[: _core._sparse_pack(residual, momentum, cut, values, payload)]


def add(payload: Any, into: Any) -> Any:
    """Add a payload to `into`, and return that. All payloads, in the same order, give the same bits on all ranks.

    Parameters
    ----------
    payload : array of uint8
        Of any bytes: InvalidArgument if they are no payload for as many elements, and `into` is unchanged. Bytes behind
        a payload are ignored.
    into : array of float32
    """
    _core._sparse_add(payload, into)
    return into


def momentum(momentum: Any, residual: Any, gradient: Any, factor: float) -> None:
    """Set ``momentum = factor * momentum + gradient``, then add it to `residual`: the momentum correction of DGC.

    Parameters
    ----------
    momentum, residual, gradient : array of float32
        Equally long; they do not overlap.
    factor : float
    """
    _core._sparse_momentum(momentum, residual, gradient, factor)
