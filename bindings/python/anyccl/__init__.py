"""anyccl: collective communication for arrays in host memory.

>>> import anyccl, numpy
>>> with anyccl.Communicator.from_env() as comm:
...     total = comm.all_reduce(numpy.arange(3.0))

`Communicator` gives the rules of all operations.
"""

from ._core import (
    Communicator,
    Event,
    Operator,
    PreMulSum,
    ReduceOp,
    Routing,
    Stream,
    UniqueId,
    Window,
    Work,
    __version__,
    group,
    load_algorithms,
    metrics_text,
    reduce_local,
    sequence,
)
from .arena import empty, empty_like, zeros
from .errors import (
    Aborted,
    DeviceError,
    Error,
    InProgress,
    InternalError,
    InvalidArgument,
    InvalidUsage,
    RemoteError,
    SystemFailure,
    Timeout,
    Unsupported,
)
from .grid import Graph, Grid
from .paths import cmake_prefix_path, include_dir, library_dir

__all__ = [
    "Aborted",
    "Communicator",
    "DeviceError",
    "Error",
    "Event",
    "Graph",
    "Grid",
    "InProgress",
    "InternalError",
    "InvalidArgument",
    "InvalidUsage",
    "Operator",
    "PreMulSum",
    "ReduceOp",
    "RemoteError",
    "Routing",
    "Stream",
    "SystemFailure",
    "Timeout",
    "UniqueId",
    "Unsupported",
    "Window",
    "Work",
    "__version__",
    "cmake_prefix_path",
    "empty",
    "empty_like",
    "group",
    "include_dir",
    "library_dir",
    "load_algorithms",
    "metrics_text",
    "reduce_local",
    "sequence",
    "zeros",
]
