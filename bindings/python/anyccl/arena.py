"""Arrays in memory that ranks of the same host read where it lies, so that operations copy less."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy

from ._core import _ArenaBlock, _numpy_dtype
from .errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_BYTES = 1 << 46  # as anycclMemAlloc has it


def empty(shape: int | Sequence[int], dtype: Any = "float64") -> numpy.ndarray:
    """Make a NumPy array in memory that peers can read, with undefined contents.

    Operations on it work as on any array, and copy less between ranks of one host; that matters from some 16 KiB
    on. Its memory, aligned to 64 bytes, is freed with the last view of it. Copied or pickled it is an ordinary
    array. ``torch.from_numpy(x)`` and ``jax.numpy.from_dlpack(x)`` are views, too.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : str or dtype
        As "float32", ``numpy.float32``, ``torch.float32`` or ``x.dtype``.

    Raises
    ------
    InvalidArgument
        If a dimension is negative, the array would have more than 64 TiB, or anyccl has no such element type.
    SystemFailure
        If a limit of the process or of its cgroup leaves too little memory. Without one, the system ends a program
        that takes more than there is.
    """
    extents = tuple(map(operator.index, shape)) if hasattr(shape, "__iter__") else (operator.index(shape),)
    if any(extent < 0 for extent in extents):
        raise InvalidArgument(f"shape is {extents}: dimensions are 0 or more")
    kind = _numpy_dtype(dtype)
    size = math.prod(extents) * kind.itemsize
    if size > _MOST_BYTES:
        raise InvalidArgument(f"shape is {extents}: {size} bytes, and 64 TiB are the most")
    block = _ArenaBlock(size)
    return numpy.ndarray(extents, kind, buffer=memoryview(block))


def zeros(shape: int | Sequence[int], dtype: Any = "float64") -> numpy.ndarray:
    """Make the same as `empty`, of zeros."""
    made = empty(shape, dtype)
    made.fill(0)
    return made


def empty_like(x: Any) -> numpy.ndarray:
    """Make the same as `empty`, of the shape and type of the array `x`, of any library."""
    return empty(x.shape, x.dtype)
