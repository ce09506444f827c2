"""The anyccl backend of torch.distributed.

    import torch.distributed as dist
    import anyccl.torch          # not needed where anyccl-torch is installed: torch loads it
    dist.init_process_group("anyccl")              # or "cpu:anyccl,cuda:nccl"

All operations of torch.distributed on CPU tensors, in Gloo's place. What they promise beyond torch's
own documentation:

Shapes:  any, also empty and not contiguous; elements are matched in row-major order. Tensors of lists
         may differ in size where torch says nothing against it (all_gather, reduce_scatter, gather,
         scatter, all_to_all); every rank must then know all sizes.
Order:   collectives of a group run in the order in which they are called. Point-to-point operations do
         not wait for them, and are matched in order per (sender, receiver, tag).
Threads: any thread may call; ranks must still agree on the order of collectives. wait() and everything
         else that takes time lets other Python threads run.
Time:    the limit of a collective runs from the call, that of a send or receive while wait() waits for it.
Errors:  torch.distributed.DistBackendError with the words of anyccl, which name the rank; what has failed
         stays so, collectives and point-to-point operations apart. Wrong arguments raise RuntimeError,
         ValueError or TypeError, and the group can still be used.
"""

import atexit as _atexit
import datetime as _datetime
import os as _os

# Torch loads this package while it is itself imported, if it is imported first: keep it from doing so
# here, where we import it.
_autoload = _os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD")
_os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
try:
    import torch as _torch
finally:
    if _autoload is None:
        del _os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
    else:
        _os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = _autoload
import torch.distributed as _dist

if not _torch.__version__.startswith("2.13."):  # what a Backend is changes with every minor version
    raise ImportError(f"this anyccl-torch is for torch 2.13, and this is torch {_torch.__version__}")

from . import _C
from ._C import Options, ProcessGroupAnyccl

__all__ = ["Options", "ProcessGroupAnyccl", "disable_arena", "enable_arena", "use_as_cpu_default"]


def _create(given, pg_options):
    """One rank of a group, for torch.distributed."""
    if pg_options is None:
        options = Options()
    elif isinstance(pg_options, Options):
        options = pg_options.__copy__()
    else:
        raise TypeError(
            "anyccl: pg_options must be anyccl.torch.Options, not "
            f"{type(pg_options).__module__}.{type(pg_options).__qualname__}")
    options._timeout = given.timeout
    options.group_name = given.group_id
    options.global_ranks_in_group = given.global_ranks_in_group
    return ProcessGroupAnyccl(given.store, given.group_rank, given.group_size, options)


def use_as_cpu_default() -> None:
    """Makes anyccl what init_process_group(), init_device_mesh() and new_group() take for CPU tensors
    when they are given no backend. Call it before them, on every rank."""
    _dist.Backend.default_device_backend_map["cpu"] = "anyccl"


def enable_arena(least_bytes: int = 65536) -> None:
    """From now on CPU tensors of at least `least_bytes` bytes lie in memory that the ranks of this host
    can read directly: collectives on them copy less. Every rank decides for itself.

    Memory: shared (memfd), so it counts as such; where there is none, tensors get ordinary memory. A region
            whose tensors are all gone goes back to the system.
    Fork:   a child reads the tensors of its parent as they were, and writes to copies of its own; what the
            parent writes later may show in what the child has not written. New tensors of the child lie in
            memory of its own.
    Threads: any.
    """
    if least_bytes < 0:
        raise ValueError(f"anyccl: least_bytes is {least_bytes}")
    _C.enable_arena(least_bytes)


def disable_arena() -> None:
    """New tensors get ordinary memory again; those that there are stay where they are."""
    _C.disable_arena()


def _register() -> None:
    if not _dist.is_available() or "ANYCCL" in _dist.Backend._plugins:
        return
    _dist.Backend.register_backend("anyccl", _create, extended_api=True, devices=["cpu"])
    # What completes later than this might release tensors when there is no interpreter any more.
    _atexit.register(_C.close_all, _datetime.timedelta(seconds=2))


_register()
