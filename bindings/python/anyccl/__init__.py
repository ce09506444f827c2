"""anyccl: collective communication for arrays in host memory.

>>> import anyccl, numpy
>>> with anyccl.Communicator.from_env() as comm:
...     total = comm.all_reduce(numpy.arange(3.0))

`Communicator` gives the rules of all operations.
"""

from ._core import Communicator, PreMulSum, ReduceOp, UniqueId, Work, __version__
from .errors import (
    Aborted,
    DeviceError,
    Error,
    InternalError,
    InvalidArgument,
    InvalidUsage,
    RemoteError,
    SystemFailure,
    Timeout,
    Unsupported,
)
from .grid import Grid
from .paths import cmake_prefix_path, include_dir, library_dir

__all__ = [
    "Aborted",
    "Communicator",
    "DeviceError",
    "Error",
    "Grid",
    "InternalError",
    "InvalidArgument",
    "InvalidUsage",
    "PreMulSum",
    "ReduceOp",
    "RemoteError",
    "SystemFailure",
    "Timeout",
    "UniqueId",
    "Unsupported",
    "Work",
    "__version__",
    "cmake_prefix_path",
    "include_dir",
    "library_dir",
]
